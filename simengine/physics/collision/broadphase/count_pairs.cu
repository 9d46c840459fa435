// Contacts and rows of a world, and the first contact of each pair that the broadphase found; see counting.cuh.
DEVICE void count_pairs(const Model& m, const real* qpos, const int* eq_active, const real* ten_length,
                        const int* world_status, const int* npair, const int* pair_geom, const int* pair_ncon,
                        const int* pair_nrow, int* pair_first, int* ncon, int* nefc, int* counts, int shard_size) {
  const bool healthy = world_status[0] == STATUS_HEALTHY;
  int contacts = 0, rows = healthy ? standing_rows(m, eq_active) : 0, types = 0;
  // (1) contacts of each pair, and the index of the first
  ROLLED for (int base = 0; base < npair[0]; base += LANES) {
    const int p = base + lane();
    int number = 0, total;
    if (p < npair[0]) {
      number = pair_ncon[p];
      rows += pair_nrow[p];
      if (number) types |= 1 << kind_of(m, pair_geom[2 * p], pair_geom[2 * p + 1])[0];
    }
    const int before = lane_scan(number, &total);
    if (p < npair[0]) pair_first[p] = contacts + before;
    contacts += total;
  }
  store_counts(m, qpos, ten_length, healthy, contacts, rows, types, ncon, nefc, counts, shard_size);
  lane_sync();
}
