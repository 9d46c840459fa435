// Counting for models with any pair type and any type of row, in one body: it lists pairs, searches, and counts.

// Search for the contacts of the listed pairs, and keep those of the first pairs for the narrowphase. Each lane has a
// pair; where cores overlap, all lanes search for the normal of one pair after another, with the polytope in memory
// that they share.
DEVICE void search_pairs(const Model& m, const int* near_cand, const int* search_near, int searches,
                         const real* geom_xpos, const real* geom_xmat, int* search_found, real* kept_contact,
                         real* polytope) {
  Polytope& shared = *reinterpret_cast<Polytope*>(polytope);
  ROLLED for (int base = 0; base < searches; base += LANES) {
    int number = 0, cores = CORES_APART;
    Contact found[MAX_CONVEX];
    Difference d;
    Simplex simplex;
    real normal[3];
    const int k = base + lane(), c = k < searches ? near_at(m, near_cand, search_near[k]) : -1;
    if (c >= 0) {
      d = difference_of(pair_of(m, c, geom_xpos, geom_xmat));
      cores = begin_search<OneLane>(d, detection_margin(m, c), simplex, normal);
    }
    int left = cores == CORES_DEEP ? LANES - lane() : 0;
    ROLLED for (int most = lane_most(left); most; most = lane_most(left)) {
      const bool own = lane() == LANES - most;
      const int other = near_at(m, near_cand, search_near[base + LANES - most]);
      const Difference deep = difference_of(pair_of(m, other, geom_xpos, geom_xmat));
      Simplex around = simplex_of_lane(simplex, LANES - most);
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
      if (end_search<OneLane>(d, p.pos1, margin, simplex, normal, kinks, found)) {
        number = with_features(p, d, margin, simplex, kinks, found);
      }
    }
    if (c >= 0) {
      search_found[k] = number + FOUND_ROWS * rows_of(m, c, found, number);
      if (is_kept(m, k)) put_kept(kept_contact, k, found, number);
    }
  }
}

// The same by a single lane, which has all of a pair at hand.
DEVICE void search_in_turn(const Model& m, const int* near_cand, const int* search_near, int searches,
                           const real* geom_xpos, const real* geom_xmat, int* search_found, real* kept_contact) {
  for (int k = 0; k < searches; ++k) {
    const int c = near_at(m, near_cand, search_near[k]);
    Contact found[MAX_CONVEX];
    const int number = collide_convex(pair_of(m, c, geom_xpos, geom_xmat), detection_margin(m, c), found);
    search_found[k] = number + FOUND_ROWS * rows_of(m, c, found, number);
    if (is_kept(m, k)) put_kept(kept_contact, k, found, number);
  }
}

DEVICE void collision_general(const Model& m, const real* qpos, const int* eq_active, const real* ten_length,
                              const real* geom_xpos, const real* geom_xmat, const int* world_status, int* near_cand,
                              int* near_adr, int* search_near, int* search_found, real* kept_contact, real* kept_prism,
                              int* pair_tally, int* ncon, int* nefc, int* counts, real* polytope, real* waiting,
                              int shard_size) {
  const bool healthy = world_status[0] == STATUS_HEALTHY;
  const Tally tally =
      list_pairs(m, healthy, geom_xpos, geom_xmat, near_cand, near_adr, search_near, kept_prism, waiting);
  if (SEARCHES && m.nsearch()) {
#if LANES == 1
    search_in_turn(m, near_cand, search_near, tally.searches, geom_xpos, geom_xmat, search_found, kept_contact);
#else
    search_pairs(m, near_cand, search_near, tally.searches, geom_xpos, geom_xmat, search_found, kept_contact, polytope);
#endif
    lane_sync();
  }
  int rows = tally.rows + (healthy ? standing_rows(m, eq_active) : 0), types = 0;
  const int contacts = add_up(m, tally, near_cand, search_near, search_found, near_adr, &rows, &types);
  NearPairs{m, near_cand, near_adr, tally.near}.end(contacts, tally.searches, 0, pair_tally);
  store_counts(m, qpos, ten_length, healthy, contacts, rows, types, ncon, nefc, counts, shard_size);
  lane_sync();
}
