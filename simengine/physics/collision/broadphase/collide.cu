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

DEVICE void collide(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* pair_geom,
                    const int* pair_number, const int* pair_slot, int* pair_ncon, int* pair_nrow, real* slot_dist,
                    real* slot_pos, real* slot_frame) {
  // (1) pairs that one lane handles alone
  LANE_FOR(s, m.slice_number) {
    const int p = m.slice_first + s, g1 = pair_geom[2 * p], g2 = pair_geom[2 * p + 1], number = pair_number[p];
    const int type = kind_of(m, g1, g2)[0];
    if (type == TYPE_HFIELD) continue;
    FillSlots fill = slots_of(m, g1, g2, number, pair_slot[p], slot_dist, slot_pos, slot_frame);
    int found = 0;
    if (!apart(m, g1, g2, number, type, geom_xpos, geom_xmat)) {
      const real reach = reach_of(m, g1, g2, number);
      Contact contact[MAX_CONTACTS];
      found = collide_any(type, pair_of(m, g1, g2, geom_xpos, geom_xmat), reach, contact);
      for (int k = 0; k < found; ++k) fill(k, contact[k]);
    }
    pair_ncon[p] = found;
    pair_nrow[p] = fill.acting * rows_between(m, g1, g2, dim_of(m, g1, g2, number));
  }
  // (2) pairs with a height field, whose prisms the lanes share
  ROLLED for (int s = 0; m.nhfield() && s < m.slice_number; ++s) {
    const int p = m.slice_first + s, g1 = pair_geom[2 * p], g2 = pair_geom[2 * p + 1], number = pair_number[p];
    if (kind_of(m, g1, g2)[0] != TYPE_HFIELD) continue;
    FillSlots fill = slots_of(m, g1, g2, number, pair_slot[p], slot_dist, slot_pos, slot_frame);
    int found = 0;
    if (!apart(m, g1, g2, number, TYPE_HFIELD, geom_xpos, geom_xmat)) {
      found = each_prism(pair_of(m, g1, g2, geom_xpos, geom_xmat), reach_of(m, g1, g2, number), fill);
    }
    const int acting = lane_sum_int(fill.acting);
    if (lane() == 0) {
      pair_ncon[p] = found;
      pair_nrow[p] = acting * rows_between(m, g1, g2, dim_of(m, g1, g2, number));
    }
  }
  lane_sync();
}
