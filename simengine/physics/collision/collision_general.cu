// Counting for models with any pair type and any type of row, in one body: it lists pairs, searches, and counts.
DEVICE void collision_general(const Model& m, const real* qpos, const int* eq_active, const real* ten_length,
                              const real* geom_xpos, const real* geom_xmat, const int* world_status, int* near_cand,
                              int* near_adr, int* search_near, int* search_found, real* kept_contact, int* ncon,
                              int* nefc, int* counts, real* polytope, real* waiting, int shard_size) {
  const bool healthy = world_status[0] == STATUS_HEALTHY;
  const Tally tally = list_pairs(m, healthy, geom_xpos, geom_xmat, near_cand, near_adr, search_near, waiting);
  if (m.nsearch()) {
    search_pairs(m, near_cand, search_near, 0, tally.searches, 0, 1, geom_xpos, geom_xmat, search_found, kept_contact,
                 polytope);
    lane_sync();
  }
  int rows = tally.rows + (healthy ? standing_rows(m, eq_active) : 0), types = 0;
  const int contacts = add_up(m, tally, near_cand, search_near, search_found, near_adr, &rows, &types);
  store_counts(m, qpos, ten_length, healthy, contacts, rows, types, ncon, nefc, counts, shard_size);
  lane_sync();
}
