// Contacts of the near pairs that need neither a search nor several lanes; see counting.cuh. A lane has pairs of any
// world: neighbouring lanes have those of neighbouring worlds. All go through the types of pairs together, and several
// lanes share the pairs of a world and type, so that few wait while others collide pairs of another type.

// The place of a pair of a type from place `i` on, after so many others of that type; `near` if there is none.
DEVICE int next_of_type(const Model& m, const int* near_cand, int near, int type, int i, int others) {
  ROLLED for (; i < near; ++i) {
    if (m.cand_type()[near_at(m, near_cand, i)] == type && others-- == 0) break;
  }
  return i;
}

// near_adr receives the number of contacts of each pair, plus FOUND_ROWS times that of their rows.
DEVICE void collision_near(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                           const int* pair_tally, int* near_adr, int part, int parts) {
  const int near = pair_tally[0], first = part + parts * lane(), others = parts * LANES - 1;
  int types = 0;
  ROLLED for (int i = 0; i < near; ++i) types |= 1 << m.cand_type()[near_at(m, near_cand, i)];
  types &= ~(1 << TYPE_HFIELD | 1 << TYPE_CONVEX);
  ROLLED for (int type = 0; types >> type; ++type) {
    int i = types >> type & 1 ? next_of_type(m, near_cand, near, type, 0, first) : near;
    ROLLED while (i < near) {
      const int c = near_at(m, near_cand, i);
      Contact found[MAX_CONTACTS];
      const int number = collide_counted(type, pair_of(m, c, geom_xpos, geom_xmat), detection_margin(m, c), found);
      put_near(m, near_adr, i, number + FOUND_ROWS * rows_of(m, c, found, number));
      i = next_of_type(m, near_cand, near, type, i + 1, others);
    }
  }
  lane_sync();
}
