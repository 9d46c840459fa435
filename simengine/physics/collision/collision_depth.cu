// Depth of the pairs whose cores overlap, all lanes a pair, with the polytope in memory that they share; see
// counting.cuh. Pairs beyond the memory for states of searches are searched from start to end.

// Search for the contacts of the listed pairs from number `begin` on, and keep those of the first pairs for the
// narrowphase. Search begin + k of a world is done by part k % parts. Each lane has a pair; where cores overlap, all
// lanes search for the normal of one pair after another.
DEVICE void search_pairs(const Model& m, const int* near_cand, const int* search_near, int begin, int searches, int part, int parts,
                         const real* geom_xpos, const real* geom_xmat, int* search_found, real* kept_contact,
                         real* polytope) {
  Polytope& shared = *reinterpret_cast<Polytope*>(polytope);
  ROLLED for (int base = begin + part; base < searches; base += parts * LANES) {
    int number = 0, cores = CORES_APART;
    Contact found[MAX_CONVEX];
    Difference d;
    Simplex simplex;
    real normal[3];
    const int k = base + parts * lane(), c = k < searches ? near_cand[search_near[k]] : -1;
    if (c >= 0) {
      d = difference_of(pair_of(m, c, geom_xpos, geom_xmat));
      cores = begin_search(d, detection_margin(m, c), simplex, normal);
    }
    int left = cores == CORES_DEEP ? LANES - lane() : 0;
    ROLLED for (int most = lane_most(left); most; most = lane_most(left)) {
      const bool own = lane() == LANES - most;
      const int other = near_cand[search_near[base + parts * (LANES - most)]];
      const Difference deep = LANES == 1 ? d : difference_of(pair_of(m, other, geom_xpos, geom_xmat));
      Simplex around;
      real outward[3];
      epa<AllLanes>(deep, shared, around, outward);
      if (!own) continue;
      left = 0;
      simplex = around;
      for (int i = 0; i < 3; ++i) normal[i] = outward[i];
    }
    if (cores != CORES_APART) {
      Kinks kinks;
      const Pair p = pair_of(m, c, geom_xpos, geom_xmat);
      const real margin = detection_margin(m, c);
      if (end_search(d, p.pos1, margin, simplex, normal, kinks, found)) {
        number = with_features(p, d, margin, simplex, kinks, found);
      }
    }
    if (c >= 0) {
      search_found[k] = number + FOUND_ROWS * rows_of(m, c, found, number);
      if (is_kept(m, k)) put_kept(kept_contact, k, found, number);
    }
  }
}

DEVICE void collision_depth(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                            const int* search_near, const int* pair_tally, const int* search_state, int* search_found, real* search_simplex,
                            real* polytope, int part, int parts) {
  const int kept = kept_searches(m, pair_tally[1]);
  int k = -1, number = -1;  // the search, and its number among those with overlapping cores
  ROLLED for (int own = part;; own += parts) {
    ROLLED for (; number < own && k < kept; ++number) k = next_search(search_state, kept, k, CORES_DEEP, CORES_DEEP);
    if (k >= kept) break;
    const Difference d = difference_of(pair_of(m, near_cand[search_near[k]], geom_xpos, geom_xmat));
    Simplex simplex;
    real normal[3];
    epa<AllLanes>(d, *reinterpret_cast<Polytope*>(polytope), simplex, normal);
    if (lane() == 0) put_simplex(search_simplex + SIMPLEX_WORDS * size_t(k), simplex, normal);
  }
  search_pairs(m, near_cand, search_near, kept, pair_tally[1], part, parts, geom_xpos, geom_xmat, search_found, nullptr, polytope);
}
