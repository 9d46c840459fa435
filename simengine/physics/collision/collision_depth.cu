// Depth of the pairs whose cores overlap, all lanes a pair, with the polytope in memory that they share; see
// counting.cuh.
DEVICE void collision_depth(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                            const int* search_near, const int* pair_tally, const int* search_state,
                            real* search_simplex, real* polytope, int part, int parts) {
  const int kept = kept_searches(m, pair_tally[1]);
  int k = -1, number = -1;  // the search, and its number among those with overlapping cores
  ROLLED for (int own = part;; own += parts) {
    ROLLED for (; number < own && k < kept; ++number) k = next_search(search_state, kept, k, CORES_DEEP, CORES_DEEP);
    if (k >= kept) break;
    const Difference d = difference_of(pair_of(m, near_cand[search_near[k]], geom_xpos, geom_xmat));
    Simplex simplex;
    real normal[3];
#if BEGINS_WITH_SIMPLEX
    take_simplex(search_simplex + SIMPLEX_WORDS * size_t(k), false, simplex, normal);
#endif
    epa<AllLanes>(d, *reinterpret_cast<Polytope*>(polytope), simplex, normal);
    if (lane() == 0) put_simplex(search_simplex + SIMPLEX_WORDS * size_t(k), simplex, normal);
  }
  lane_sync();
}
