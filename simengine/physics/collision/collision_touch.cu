// Contacts of the pairs whose cores are near each other or overlap, one lane a pair; see counting.cuh. The distance of
// their cores or the depth is known.
DEVICE void collision_touch(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                            const int* search_near, const int* pair_tally, const int* search_state,
                            const real* search_simplex, real* kept_contact, int* search_found, int part, int parts) {
  const int searches = kept_searches(m, pair_tally[1]);
  int k = -1, number = -1;  // the search, and its number among those with near cores
  ROLLED for (int own = part + parts * lane(); k < searches; own += parts * LANES) {
    ROLLED for (; number < own && k < searches; ++number) {
      k = next_search(search_state, searches, k, CORES_NEAR, CORES_DEEP);
    }
    if (k >= searches) break;
    const int c = near_cand[search_near[k]];
    const Pair p = pair_of(m, c, geom_xpos, geom_xmat);
    const Difference d = difference_of(p);
    const real margin = detection_margin(m, c);
    Simplex simplex;
    real normal[3];
    if (!is_segment_cylinder(d)) {
      take_simplex(search_simplex + SIMPLEX_WORDS * size_t(k), search_state[k] == CORES_DEEP, simplex, normal);
    }
    Kinks kinks;
    Contact found[MAX_CONVEX];
    if (!end_search(d, p.pos1, margin, simplex, normal, kinks, found)) continue;
    const int contacts = with_features(p, d, margin, simplex, kinks, found);
    search_found[k] = contacts + FOUND_ROWS * rows_of(m, c, found, contacts);
    put_kept(kept_contact, k, found, contacts);
  }
  // pairs beyond the memory for states of searches
  ROLLED for (int k = searches + part + parts * lane(); k < pair_tally[1]; k += parts * LANES) {
    const int c = near_cand[search_near[k]];
    Contact found[MAX_CONVEX];
    const int contacts = collide_convex(pair_of(m, c, geom_xpos, geom_xmat), detection_margin(m, c), found);
    search_found[k] = contacts + FOUND_ROWS * rows_of(m, c, found, contacts);
  }
  lane_sync();
}
