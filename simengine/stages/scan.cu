// Add up one column of counts over the worlds of a shard: running sums become addresses, ones become a list of worlds.
// The unit is a column, worked on by a whole block on the GPU.

DEVICE void scan(int column, const int* counts, int* con_adr, int* efc_adr, int* lists, int* totals, int* totals_host,
                 int begin, int shard_size) {
  int sum = 0;
  for (int base = 0; base < shard_size; base += LANES) {
    const int i = base + lane();
    const int x = i < shard_size ? counts[column * shard_size + i] : 0;
    int total;
    const int before = sum + lane_scan(x, &total);
    if (i < shard_size) {
      // (1) addresses in the shard's arenas
      if (column == 0) con_adr[begin + i] = before;
      if (column == 1) efc_adr[begin + i] = before;
      // (2) worlds of the column, in ascending order
      if (column >= NUM_SUMS && x) lists[column * shard_size + before] = begin + i;
    }
    sum += total;
  }
  // (3) the totals, also where the host can read them
  if (lane() == 0) {
    totals[column] = sum;
    totals_host[column] = sum;
    publish_fence();
  }
}
