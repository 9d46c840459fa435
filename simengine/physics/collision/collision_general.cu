// Counting for models with any pair type and any type of row; see counting.cuh. Pairs of three kinds are counted: those
// that a lane handles on the way; those with a height field, whose work the lanes share; and those that need a search,
// which are listed first, so that few searches far from each other among the candidates run side by side.

// Search for the contacts of the listed pairs, and keep the first ones for the narrowphase. Each lane has a pair; where
// cores overlap, all lanes search for the normal of one pair after another, with the polytope in memory that they
// share. Writes the number of contacts of each pair, and returns whether the lane found any; `rows` receives its share
// of their rows.
DEVICE bool search_pairs(const Model& m, const int* search_cand, int searches, const real* geom_xpos,
                         const real* geom_xmat, int* numbers, real* kept_contact, real* polytope, int* rows) {
  Polytope& shared = *reinterpret_cast<Polytope*>(polytope);
  int kept = 0;
  bool any = false;
  ROLLED for (int base = 0; base < searches; base += LANES) {
    int number = 0, total, cores = CORES_APART;
    Contact found[MAX_CONVEX];
    Difference d;
    Simplex simplex;
    real normal[3];
    const int c = base + lane() < searches ? search_cand[base + lane()] : -1;
    if (c >= 0) {
      d = difference_of(pair_of(m, c, geom_xpos, geom_xmat));
      cores = begin_search(d, detection_margin(m, c), simplex, normal);
    }
    int left = cores == CORES_DEEP ? LANES - lane() : 0;
    ROLLED for (int most = lane_most(left); most; most = lane_most(left)) {
      const bool own = lane() == LANES - most;
      const Difference deep =
          LANES == 1 ? d : difference_of(pair_of(m, search_cand[base + LANES - most], geom_xpos, geom_xmat));
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
      numbers[c] = number;
      *rows += rows_of(m, c, found, number);
    }
    const int first = kept + lane_scan(number, &total);
    if (is_kept(m, first, number)) put_kept(kept_contact, first, found, number);
    any = any || number;
    kept += total;
  }
  return any;
}

DEVICE void collision_general(const Model& m, const real* qpos, const int* eq_active, const real* ten_length,
                              const real* geom_xpos, const real* geom_xmat, const int* world_status, int* cand_adr,
                              int* search_cand, real* kept_contact, int* ncon, int* nefc, int* counts, real* polytope,
                              int shard_size) {
  const bool healthy = world_status[0] == STATUS_HEALTHY, searching = m.nsearch() > 0;
  const int ncand = healthy ? m.ncand() : 0;
  int sum = 0, contacts = 0, rows = healthy ? standing_rows(m, eq_active) : 0, types = 0;
  if (m.nhfield() && healthy) {  // the numbers of contacts wait in cand_adr
    LANE_FOR(c, ncand) cand_adr[c] = 0;
    lane_sync();
    count_hfields(m, geom_xpos, geom_xmat, cand_adr, &rows);
    lane_sync();
  }
  // (1) contacts of pairs without a search; those with a height field are counted already. The lanes add up contacts,
  // or pairs with a search if the model has any; cand_adr receives the number of contacts then, and otherwise the index
  // of the first
  ROLLED for (int base = 0; base < m.ncand(); base += LANES) {
    const int c = base + lane();
    int number = 0, more_rows = 0, total;
    bool search = false;
    if (c < ncand && m.cand_type()[c] == TYPE_HFIELD) {
      number = cand_adr[c];
    } else if (c < ncand && m.cand_type()[c] == TYPE_CONVEX) {
      search = !apart<true>(m, c, geom_xpos, geom_xmat);
    } else if (c < ncand) {
      Contact found[MAX_CONTACTS];
      number = count_pair<collide_any, true>(m, c, geom_xpos, geom_xmat, found, &more_rows);
    }
    const int place = sum + lane_scan(searching ? search : number, &total);
    if (c < m.ncand()) cand_adr[c] = searching ? number : place;
    if (search) search_cand[place] = c;
    if (number) types |= 1 << m.cand_type()[c];
    sum += total;
    rows += more_rows;
  }
  if (searching) {
    LANE_FOR(k, m.nsearch() - sum) search_cand[sum + k] = -1;
    lane_sync();
    if (search_pairs(m, search_cand, sum, geom_xpos, geom_xmat, cand_adr, kept_contact, polytope, &rows)) {
      types |= 1 << TYPE_CONVEX;
    }
    lane_sync();
    // the index of the first contact of each pair
    ROLLED for (int base = 0; base < m.ncand(); base += LANES) {
      const int c = base + lane();
      int total;
      const int before = lane_scan(c < m.ncand() ? cand_adr[c] : 0, &total);
      if (c < m.ncand()) cand_adr[c] = contacts + before;
      contacts += total;
    }
  } else {
    contacts = sum;
  }
  store_counts(m, qpos, ten_length, healthy, contacts, rows, types, ncon, nefc, counts, shard_size);
  LANE_FOR(i, 1) cand_adr[m.ncand()] = contacts;
  lane_sync();
}
