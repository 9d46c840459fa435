// Distance of the pairs that are listed for a search, one lane a pair; see counting.cuh. `search_state` receives what
// is known of the cores of each pair. Pairs beyond the memory for their states are left to collision_touch.

DEVICE void collision_distance(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                               const int* search_near, const int* pair_tally, int* search_found, int* search_state,
                               real* search_simplex, int part, int parts) {
  const int searches = kept_searches(m, pair_tally[1]);
  ROLLED for (int k = part + parts * lane(); k < searches; k += parts * LANES) {
    const int c = near_cand[search_near[k]];
    const Difference d = difference_of(pair_of(m, c, geom_xpos, geom_xmat));
    Simplex simplex;
    real normal[3];
    const int cores = begin_search(d, detection_margin(m, c), simplex, normal);
    const bool left = cores == CORES_NEAR || (BEGINS_WITH_SIMPLEX && cores == CORES_DEEP);
    if (left && !is_segment_cylinder(d)) {
      put_simplex(search_simplex + SIMPLEX_WORDS * size_t(k), simplex, normal);
    }
    search_state[k] = cores;
    search_found[k] = 0;
  }
  lane_sync();
}
