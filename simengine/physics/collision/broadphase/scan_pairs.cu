// Prefix sum of one column of pair counts over the worlds of a shard, which gives addresses. The unit of work is a
// column; on the GPU a whole block of threads shares it.

DEVICE void scan_pairs(int column, const int* pair_counts, int* pair_adr, int* slot_adr, int* slice_adr,
                       int* pair_totals, int* pair_totals_host, int begin, int shard_size) {
  const int at = column * shard_size;
  int* address = column == 0 ? pair_adr : column == 1 ? slot_adr : slice_adr;
  int sum = 0;
  ROLLED for (int base = 0; base < shard_size; base += LANES) {
    const int world = base + lane();
    int total;
    const int before = lane_scan(world < shard_size ? pair_counts[at + world] : 0, &total);
    if (world < shard_size) address[begin + world] = sum + before;
    sum += total;
  }
  if (lane() == 0) {
    pair_totals[column] = sum;
    pair_totals_host[column] = sum;
    publish_fence();
  }
}
