// Counts of a world whose pairs have been listed and searched; see counting.cuh.

// Add what searches found to the lane's share of the rows and types. Let cand_adr, which has the numbers of contacts of
// the other pairs, be the index of the first contact of each pair. Returns the number of contacts.
DEVICE int add_found(const Model& m, const int* search_cand, const int* search_found, int searches, int* cand_adr,
                     int* rows, int* types) {
  LANE_FOR(k, searches) {
    const int number = search_found[k] % FOUND_ROWS;
    cand_adr[search_cand[k]] = number;
    *rows += search_found[k] / FOUND_ROWS;
    if (number) *types |= 1 << TYPE_CONVEX;
  }
  lane_sync();
  int contacts = 0;
  ROLLED for (int base = 0; base < m.ncand(); base += LANES) {
    const int c = base + lane();
    int total;
    const int before = lane_scan(c < m.ncand() ? cand_adr[c] : 0, &total);
    if (c < m.ncand()) cand_adr[c] = contacts + before;
    contacts += total;
  }
  return contacts;
}

DEVICE void collision_count(const Model& m, const real* qpos, const int* eq_active, const real* ten_length,
                            const int* world_status, const int* search_cand, const int* search_found,
                            const int* pair_tally, int* ncon, int* nefc, int* counts, int* cand_adr, int shard_size) {
  const bool healthy = world_status[0] == STATUS_HEALTHY;
  int rows = healthy ? standing_rows(m, eq_active) : 0, types = 0;
  rows += lane() == 0 ? pair_tally[0] : 0;
  types |= lane() == 0 ? pair_tally[1] : 0;
  const int contacts = add_found(m, search_cand, search_found, pair_tally[2], cand_adr, &rows, &types);
  store_counts(m, qpos, ten_length, healthy, contacts, rows, types, ncon, nefc, counts, shard_size);
  LANE_FOR(i, 1) cand_adr[m.ncand()] = contacts;
  lane_sync();
}
