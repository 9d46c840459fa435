// Search for the contacts of the listed pairs, and keep those of the first pairs for the narrowphase.

// Search number k of a world is done by part k % parts. Each lane has a pair; where cores overlap, all lanes search for
// the normal of one pair after another, with the polytope in memory that they share.
DEVICE void search_pairs(const Model& m, const int* search_cand, int searches, int part, int parts,
                         const real* geom_xpos, const real* geom_xmat, int* search_found, real* kept_contact,
                         real* polytope) {
  Polytope& shared = *reinterpret_cast<Polytope*>(polytope);
  ROLLED for (int base = part; base < searches; base += parts * LANES) {
    int number = 0, cores = CORES_APART;
    Contact found[MAX_CONVEX];
    Difference d;
    Simplex simplex;
    real normal[3];
    const int k = base + parts * lane(), c = k < searches ? search_cand[k] : -1;
    if (c >= 0) {
      d = difference_of(pair_of(m, c, geom_xpos, geom_xmat));
      cores = begin_search(d, detection_margin(m, c), simplex, normal);
    }
    int left = cores == CORES_DEEP ? LANES - lane() : 0;
    ROLLED for (int most = lane_most(left); most; most = lane_most(left)) {
      const bool own = lane() == LANES - most;
      const int other = search_cand[base + parts * (LANES - most)];
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

DEVICE void collision_search(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* search_cand,
                             const int* pair_tally, int* search_found, real* kept_contact, real* polytope, int part,
                             int parts) {
  search_pairs(m, search_cand, pair_tally[2], part, parts, geom_xpos, geom_xmat, search_found, kept_contact, polytope);
}
