// Depth of a geom in a prism, all lanes a prism, with the polytope in memory that they share; see prism_search.cuh.
// `part` is the number of the prism.
DEVICE void prism_depth(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                        const int* prism_of, const int* prism_queue, real* prism_simplex, real* polytope, int part) {
  const Pair p = pair_of(m, near_at(m, near_cand, prism_of[2 * part]), geom_xpos, geom_xmat);
  Patch f;
  real vert[PRISM_REALS];
  listed_prism(p, prism_of[2 * part + 1], f, vert);
  prism_shape(p, f, vert);
  Simplex simplex;
  real normal[3];
  take_simplex(prism_simplex + SIMPLEX_WORDS * size_t(part), false, simplex, normal);
  epa<AllLanes>(f.d, *reinterpret_cast<Polytope*>(polytope), simplex, normal);
  if (lane() == 0) put_simplex(prism_simplex + SIMPLEX_WORDS * size_t(part), simplex, normal);
  lane_sync();
}
