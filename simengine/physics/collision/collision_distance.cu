// Distance of the pairs that are listed for a search, one lane a pair, or all lanes of a group one after another; see
// searches.cuh. `search_state` receives what is known of the cores of each pair, and the queue the pairs that other
// kernels go on with. Those beyond the memory for states are left to collision_touch.

#ifdef SHARES_DISTANCE
typedef AllLanes DistanceTeam;
#else
typedef OneLane DistanceTeam;
#endif

// In which line of the queue a search waits: alike searches beside each other, and those that take longest first.
DEVICE int line_of(const Difference& d, int cores) {
  if (cores != CORES_DEEP) return QUEUE_NEAR;
  return d.a.hull.nvert && d.b.hull.nvert ? 0 : !(d.a.radius > 0) && !(d.b.radius > 0) ? 1 : 2;
}

DEVICE void collision_distance(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                               const int* search_near, const int* pair_tally, int* search_found, int* search_state,
                               real* search_simplex, int* search_queue, int part, int parts, int world, int begin,
                               int n) {
  const SearchQueue queue = {search_queue, m.nkept() / MAX_CONVEX, n};
  const int searches = kept_searches(m, pair_tally[1]);
  const bool together = DistanceTeam::SIZE > 1;
  const int groups = together ? parts : parts * LANES;
  ROLLED for (int k = together ? part : part + parts * lane(); k < searches; k += groups) {
    const int c = near_at(m, near_cand, search_near[k]);
    const Difference d = difference_of(pair_of(m, c, geom_xpos, geom_xmat));
    Simplex simplex;
    real normal[3];
    const int cores = begin_search<DistanceTeam>(d, detection_margin(m, c), simplex, normal);
    if (together && lane()) continue;
    if (cores != CORES_APART && cores != CORES_REST && !is_segment_cylinder(d)) {
      put_simplex(search_simplex + SIMPLEX_WORDS * size_t(k), simplex, normal);
    }
    search_state[k] = cores;
    search_found[k] = 0;
    if (cores != CORES_APART) put_entry(search_queue, queue, line_of(d, cores), {world - begin, k});
  }
  ROLLED for (int k = part; k < QUEUE_REST && searches + k < pair_tally[1]; k += parts) {
    if (lane() == 0) put_entry(search_queue, queue, QUEUE_NEAR, {world - begin, MOST_SEARCHES + k});
  }
  lane_sync();
}
