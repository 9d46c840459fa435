// Counts of a world whose pairs have been listed and searched; see counting.cuh.

// Add what is found of pairs to the lane's share of the rows. Let near_adr, which has what is found of pairs without a
// search, be the index of the first contact of each near pair; `types` receives the lane's share of the types that have
// contacts, with one bit per type. Returns the number of contacts.
DEVICE int add_up(const Model& m, const Tally& tally, const int* near_cand, const int* search_near,
                  const int* search_found, int* near_adr, int* rows, int* types) {
  LANE_FOR(k, tally.searches) put_near(m, near_adr, search_near[k], search_found[k]);
  lane_sync();
  int contacts = 0, total;
  ROLLED for (int base = 0; base < tally.near; base += LANES) {
    const int i = base + lane();
    const unsigned found = i < tally.near ? near_at(m, near_adr, i) : 0;
    const int number = found % FOUND_ROWS;
    *rows += found / FOUND_ROWS;
    if (number) *types |= 1 << m.cand_type()[near_at(m, near_cand, i)];
    const int before = lane_scan(number, &total);
    if (i < tally.near) put_near(m, near_adr, i, contacts + before);
    contacts += total;
  }
  LANE_FOR(i, 1) put_near(m, near_adr, tally.near, contacts);
  return contacts;
}

DEVICE void collision_count(const Model& m, const real* qpos, const int* eq_active, const real* ten_length,
                            const int* world_status, const int* near_cand, const int* search_near,
                            const int* search_found, const int* pair_tally, int* ncon, int* nefc, int* counts,
                            int* near_adr, int shard_size) {
  const bool healthy = world_status[0] == STATUS_HEALTHY;
  const Tally tally = {pair_tally[0], pair_tally[1], lane() == 0 ? pair_tally[2] : 0};
  int rows = tally.rows + (healthy ? standing_rows(m, eq_active) : 0), types = 0;
  const int contacts = add_up(m, tally, near_cand, search_near, search_found, near_adr, &rows, &types);
  store_counts(m, qpos, ten_length, healthy, contacts, rows, types, ncon, nefc, counts, shard_size);
  lane_sync();
}
