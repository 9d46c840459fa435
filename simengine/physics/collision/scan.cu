// Prefix sum of one column of counts over the worlds of a shard. Sums of contacts and rows become addresses; columns of
// zeros and ones become lists of worlds. The unit of work is a column; on the GPU a whole block of threads shares it.

#define SCAN_ITEMS 8  // consecutive worlds per lane and round

DEVICE void scan(int column, const int* counts, int* con_adr, int* efc_adr, int* lists, int* totals, int* totals_host,
                 int* progress, int* progress_host, int begin, int shard_size, int contact_capacity, int row_capacity) {
  const int* values = counts + column * shard_size;
  int sum = 0;
  for (int base = 0; base < shard_size; base += SCAN_ITEMS * LANES) {
    const int first = base + SCAN_ITEMS * lane();
    int x[SCAN_ITEMS], own = 0, total;
    for (int k = 0; k < SCAN_ITEMS; ++k) {
      x[k] = first + k < shard_size ? values[first + k] : 0;
      own += x[k];
    }
    int before = sum + lane_scan(own, &total);
    for (int k = 0; k < SCAN_ITEMS && first + k < shard_size; ++k) {
      const int world = begin + first + k;
      // (1) the world's address in the shard's arenas
      if (column == 0) con_adr[world] = before;
      if (column == 1) efc_adr[world] = before;
      // (2) the list of the column's worlds, in ascending order
      if (column >= NUM_SUMS && x[k]) lists[column * shard_size + before] = world;
      before += x[k];
    }
    sum += total;
  }
  // (3) the total, also in memory that the host can read
  if (lane() == 0) {
    totals[column] = sum;
    totals_host[column] = sum;
    // (4) if the capacity of an arena is too small, record it: the following kernels do nothing until the host has
    // enlarged the arena, and the counts stay unchanged
    if (progress && column < 2) {
      const bool full = sum > (column == 0 ? contact_capacity : row_capacity);
      progress[column] = progress_host[column] = full;
      progress[2 + column] = int(unsigned(progress[2 + column]) + !full);
      progress_host[2 + column] = progress[2 + column];
    }
    publish_fence();
  }
}
