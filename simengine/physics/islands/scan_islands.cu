// Prefix sum of one column of island counts over the worlds of a shard. The unit of work is a column; on the GPU a
// whole block of threads shares it.

DEVICE void scan_islands(int column, const int* island_counts, int* island_adr, int* island_totals,
                         int* island_totals_host, int begin, int shard_size) {
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
    publish_fence();
  }
}
