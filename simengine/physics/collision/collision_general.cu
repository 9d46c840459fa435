// Counting for models with any pair type and any type of row, in one body: it lists pairs, searches, and counts.

DEVICE void collision_general(const Model& m, const real* qpos, const int* eq_active, const real* ten_length,
                              const real* geom_xpos, const real* geom_xmat, const int* world_status, int* cand_adr,
                              int* search_cand, int* search_found, real* kept_contact, int* ncon, int* nefc,
                              int* counts, real* polytope, int shard_size) {
  const bool healthy = world_status[0] == STATUS_HEALTHY;
  const Tally tally = list_pairs(m, healthy, geom_xpos, geom_xmat, cand_adr, search_cand);
  int rows = tally.rows + (healthy ? standing_rows(m, eq_active) : 0), types = tally.types, contacts = tally.sum;
  if (m.nsearch()) {
    lane_sync();
    search_pairs(m, search_cand, 0, tally.sum, 0, 1, geom_xpos, geom_xmat, search_found, kept_contact, polytope);
    lane_sync();
    contacts = add_found(m, search_cand, search_found, tally.sum, cand_adr, &rows, &types);
  }
  store_counts(m, qpos, ten_length, healthy, contacts, rows, types, ncon, nefc, counts, shard_size);
  LANE_FOR(i, 1) cand_adr[m.ncand()] = contacts;
  lane_sync();
}
