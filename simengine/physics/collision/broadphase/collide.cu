// Contacts of a slice of the pairs that the broadphase found: distance, position and frame, in the slots of the pair.

// Stores contacts in the slots of a pair, and counts those that are closer than the margin and so exert a force.
struct FillSlots {
  real *dist, *pos, *frame, margin;
  int acting;
  DEVICE_METHOD void operator()(int place, const Contact& contact) {
    dist[place] = contact.dist;
    for (int i = 0; i < 3; ++i) pos[3 * place + i] = contact.pos[i];
    for (int i = 0; i < 9; ++i) frame[9 * place + i] = contact.frame[i];
    acting += contact.dist < margin;
  }
};

DEVICE FillSlots slots_of(const Model& m, int g1, int g2, int number, int first, real* dist, real* pos, real* frame) {
  return {dist + first, pos + 3 * first, frame + 9 * first, margin_of(m, g1, g2, number), 0};
}

// Whether bounding spheres separate a pair, or bounding boxes if its type has an expensive narrowphase.
DEVICE bool apart(const Model& m, int g1, int g2, int number, int type, const real* geom_xpos, const real* geom_xmat) {
  const real reach = reach_of(m, g1, g2, number);
  if (spheres_apart(m, g1, g2, reach, geom_xpos, geom_xmat)) return true;
  return !(LIGHT_TYPES >> type & 1) && boxes_apart(m, g1, g2, reach, geom_xpos, geom_xmat);
}

// Pairs of a slice with height fields, whose prisms the lanes share; see hfield.cu.
struct SlicedFields {
  const Model& m;
  const real *geom_xpos, *geom_xmat;
  const int *pair_geom, *pair_number, *pair_slot;
  int *pair_ncon, *pair_nrow;
  real *dist, *pos, *frame;
  DEVICE_METHOD int geom(int s, int side) const { return pair_geom[2 * (m.slice_first + s) + side]; }
  DEVICE_METHOD int number(int s) const { return pair_number[m.slice_first + s]; }
  DEVICE_METHOD int size() const { return m.slice_number; }
  DEVICE_METHOD bool has_prisms(int s) const {
    const int g1 = geom(s, 0), g2 = geom(s, 1);
    return kind_of(m, g1, g2)[0] == TYPE_HFIELD && !apart(m, g1, g2, number(s), TYPE_HFIELD, geom_xpos, geom_xmat);
  }
  DEVICE_METHOD Pair pair(int s) const { return pair_of(m, geom(s, 0), geom(s, 1), geom_xpos, geom_xmat); }
  DEVICE_METHOD real margin(int s) const { return reach_of(m, geom(s, 0), geom(s, 1), number(s)); }
  DEVICE_METHOD FillSlots slots(int s) const {
    return slots_of(m, geom(s, 0), geom(s, 1), number(s), pair_slot[m.slice_first + s], dist, pos, frame);
  }
  DEVICE_METHOD void take(int s, int place, const Contact& contact) const { slots(s)(place, contact); }
  DEVICE_METHOD void end(int s, bool first, int found, const Contact* hit) const {
    int acting;
    bool lowest;
    lane_sum_of_key(s, hit && hit->dist < slots(s).margin, &acting, &lowest);
    if (!first || s < 0) return;
    const int p = m.slice_first + s, g1 = geom(s, 0), g2 = geom(s, 1);
    pair_ncon[p] = found;
    pair_nrow[p] += acting * rows_between(m, g1, g2, dim_of(m, g1, g2, number(s)));
  }
};

DEVICE void collide(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* pair_geom,
                    const int* pair_number, const int* pair_slot, int* pair_ncon, int* pair_nrow, real* slot_dist,
                    real* slot_pos, real* slot_frame) {
  // (1) pairs that one lane handles alone
  LANE_FOR(s, m.slice_number) {
    const int p = m.slice_first + s, g1 = pair_geom[2 * p], g2 = pair_geom[2 * p + 1], number = pair_number[p];
    const int type = kind_of(m, g1, g2)[0];
    FillSlots fill = slots_of(m, g1, g2, number, pair_slot[p], slot_dist, slot_pos, slot_frame);
    int found = 0;
    if (type != TYPE_HFIELD && !apart(m, g1, g2, number, type, geom_xpos, geom_xmat)) {
      const real reach = reach_of(m, g1, g2, number);
      Contact contact[MAX_CONTACTS];
      found = collide_any(type, pair_of(m, g1, g2, geom_xpos, geom_xmat), reach, contact);
      for (int k = 0; k < found; ++k) fill(k, contact[k]);
    }
    pair_ncon[p] = found;
    pair_nrow[p] = fill.acting * rows_between(m, g1, g2, dim_of(m, g1, g2, number));
  }
  // (2) pairs with a height field
  if (m.nhfield()) {
    lane_sync();
    each_prism(SlicedFields{m, geom_xpos, geom_xmat, pair_geom, pair_number, pair_slot, pair_ncon, pair_nrow, slot_dist,
                            slot_pos, slot_frame});
  }
  lane_sync();
}
