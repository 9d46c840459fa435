// Prefix sum of one column of counts over the worlds of a shard. Sums of contacts and rows become addresses; columns of
// zeros and ones become lists of worlds. The unit of work is a column; on the GPU a whole block of threads shares it.
// Two more columns add up the rows again, of the worlds alone that have more than row_beyond or jacobian_beyond of
// them: the others have theirs in scratch, and need no room in that arena.

#define SCAN_ITEMS 8  // consecutive worlds per lane and round

DEVICE void scan(int column, const int* counts, int* con_adr, int* efc_adr, int* efc_J_adr, int* lists, int* totals,
                 int* totals_host, int* progress, int* progress_host, int begin, int shard_size, int contact_capacity,
                 int row_capacity, int jacobian_capacity, int row_beyond, int jacobian_beyond) {
  // the arena that the sum is for, in the order of PROGRESS; -1 if there is none
  const int arena = column == 0 ? 0 : column >= NUM_COLUMNS ? 1 + column - NUM_COLUMNS : -1;
  const int* values = counts + (column < NUM_COLUMNS ? column : COLUMN_ROWS) * shard_size;
  const int beyond = arena == 1 ? row_beyond : arena == 2 ? jacobian_beyond : 0;
  int* addresses = arena == 0 ? con_adr : arena == 1 ? efc_adr : efc_J_adr;
  int sum = 0;
  for (int base = 0; base < shard_size; base += SCAN_ITEMS * LANES) {
    const int first = base + SCAN_ITEMS * lane();
    int x[SCAN_ITEMS], own = 0, total;
    for (int k = 0; k < SCAN_ITEMS; ++k) {
      x[k] = first + k < shard_size ? values[first + k] : 0;
      if (x[k] <= beyond) x[k] = 0;
      own += x[k];
    }
    int before = sum + lane_scan(own, &total);
    for (int k = 0; k < SCAN_ITEMS && first + k < shard_size; ++k) {
      const int world = begin + first + k;
      // (1) the world's address in the shard's arena
      if (arena >= 0) addresses[world] = before;
      // (2) the list of the column's worlds, in ascending order
      if (arena < 0 && column != COLUMN_ROWS && x[k]) lists[column * shard_size + before] = world;
      before += x[k];
    }
    sum += total;
  }
  // (3) the total, also in memory that the host can read
  if (lane() == 0) {
    totals[column] = sum;
    totals_host[column] = sum;
    // (4) if the capacity of an arena is too small, record it: the following kernels do nothing until the host has
    // enlarged the arena, and the counts stay unchanged. Evaluations that need less of it come too late then.
    if (progress && arena >= 0) {
      const int capacity = arena == 0 ? contact_capacity : arena == 1 ? row_capacity : jacobian_capacity;
      const bool full = sum > capacity || progress[arena];
      const int passed = NUM_ARENAS + arena;
      progress[arena] = progress_host[arena] = full;
      progress_host[passed] = progress[passed] = int(unsigned(progress[passed]) + !full);
    }
    publish_fence();
  }
}
