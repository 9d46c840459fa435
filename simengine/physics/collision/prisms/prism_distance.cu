// Contacts with listed prisms that need no search, and the distance of the other cores, one lane a prism; see
// prism_search.cuh. The queue receives the prisms that other kernels go on with.
DEVICE void prism_distance(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                           const int* prism_of, const int* prism_tally, int* prism_state, real* prism_simplex,
                           real* prism_contact, int* prism_queue, int part, int parts, int world, int begin, int n) {
  const SearchQueue queue = {prism_queue, m.nprism(), n};
  const int listed = prism_tally[0];
  ROLLED for (int k = part + parts * lane(); k < listed; k += parts * LANES) {
    const int c = near_at(m, near_cand, prism_of[2 * k]);
    const Pair p = pair_of(m, c, geom_xpos, geom_xmat);
    const real margin = detection_margin(m, c);
    Patch f;
    real vert[PRISM_REALS];
    Contact contact;
    listed_prism(p, prism_of[2 * k + 1], f, vert);
    int state = contact_at_once(p, f, vert, margin, &contact);
    if (state == PRISM_TOUCHES) put_kept(prism_contact + KEPT_REALS * k, 0, &contact, 1);
    if (state == SEARCH_PRISM) {
      Simplex simplex;
      real normal[3];
      const int cores = begin_search<OneLane>(f.d, margin, simplex, normal);
      state = cores == CORES_APART ? PRISM_APART : cores == CORES_NEAR ? PRISM_NEAR : PRISM_DEEP;
      if (cores != CORES_APART) put_simplex(prism_simplex + SIMPLEX_WORDS * size_t(k), simplex, normal);
      const int line = cores == CORES_DEEP ? QUEUE_PRISMS_DEEP : QUEUE_PRISMS_NEAR;
      if (cores != CORES_APART) put_entry(prism_queue, queue, line, {world - begin, k});
    }
    prism_state[k] = state;
  }
  lane_sync();
}
