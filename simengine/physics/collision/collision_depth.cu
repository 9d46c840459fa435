// Depth of a pair whose cores overlap, all lanes a pair, with the polytope in memory that they share; see searches.cuh.
// `part` is the number of the search.
DEVICE void collision_depth(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                            const int* search_near, const int* search_queue, real* search_simplex, real* polytope,
                            int part) {
  const Difference d = difference_of(pair_of(m, near_at(m, near_cand, search_near[part]), geom_xpos, geom_xmat));
  Simplex simplex;
  real normal[3];
  take_simplex(search_simplex + SIMPLEX_WORDS * size_t(part), false, simplex, normal);
  epa<AllLanes>(d, *reinterpret_cast<Polytope*>(polytope), simplex, normal);
  if (lane() == 0) put_simplex(search_simplex + SIMPLEX_WORDS * size_t(part), simplex, normal);
  lane_sync();
}
