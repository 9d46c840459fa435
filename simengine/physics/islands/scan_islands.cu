// Prefix sum of one column of island counts over the worlds of a shard. The unit of work is a column; on the GPU a
// whole block of threads shares it.

DEVICE void scan_islands(int column, const int* island_counts, int* island_adr, int* island_totals,
                         int* island_totals_host, int* progress, int* progress_host, int begin, int shard_size,
                         int island_capacity, int island_M_capacity, int island_J_capacity, int island_H_capacity) {
  const int at = column * shard_size;
  int sum = 0;
  ROLLED for (int base = 0; base < shard_size; base += LANES) {
    const int world = base + lane();
    int total;
    const int before = lane_scan(world < shard_size ? island_counts[at + world] : 0, &total);
    if (world < shard_size) island_adr[at + world] = sum + before;
    sum += total;
  }
  if (lane() == 0) {
    island_totals[column] = sum;
    island_totals_host[column] = sum;
    // If an arena is too small, rows count as full, too, so that the following kernels do nothing.
    if (progress && column >= COLUMN_ISLANDS) {
      const int arena = column - COLUMN_ISLANDS, own = PROGRESS_ISLANDS + arena;
      const int room[] = {island_capacity, island_M_capacity, island_J_capacity, island_H_capacity};
      const bool full = sum > room[arena];
      if (full) progress[1] = progress_host[1] = 1;
      progress_host[own] = progress[own] = int(unsigned(progress[own]) + !full);
    }
    publish_fence();
  }
}
