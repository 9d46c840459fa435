// Prefix sum of one column of counts over the worlds of a shard. Sums of contacts and rows become addresses; columns of
// zeros and ones become lists of worlds. The unit of work is a column; on the GPU a whole block of threads shares it.
// Two more columns add up the rows again, of the worlds alone that have more than row_beyond or jacobian_beyond of
// them: the others have theirs in scratch, and need no room in that arena.

#define SCAN_ITEMS 8  // consecutive worlds per lane and round

// Four consecutive integers, which a GPU loads or stores at once.
struct alignas(16) FourInts {
  int of[4];
};

// The values of the lane's worlds from number `first` on, of `number` worlds; zeros for those behind the last. `fours`
// says that they can be loaded by fours.
DEVICE void load_items(const int* values, int first, int number, bool fours, int* x) {
  if (fours) {
    UNROLLED for (int q = 0; q < SCAN_ITEMS; q += 4) {
      FourInts four = {{0, 0, 0, 0}};
      if (first + q < number) four = *reinterpret_cast<const FourInts*>(values + first + q);
      for (int k = 0; k < 4; ++k) x[q + k] = four.of[k];
    }
    return;
  }
  for (int k = 0; k < SCAN_ITEMS; ++k) x[k] = first + k < number ? values[first + k] : 0;
}

// Store the addresses of the lane's worlds, which have x entries each, the first at `before`.
DEVICE void store_addresses(int* addresses, int first, int number, bool fours, int before, const int* x) {
  UNROLLED for (int q = 0; q < SCAN_ITEMS; q += 4) {
    FourInts four;
    for (int k = 0; k < 4; ++k) {
      four.of[k] = before;
      before += x[q + k];
    }
    if (fours) {
      if (first + q < number) *reinterpret_cast<FourInts*>(addresses + first + q) = four;
      continue;
    }
    for (int k = 0; k < 4; ++k) {
      if (first + q + k < number) addresses[first + q + k] = four.of[k];
    }
  }
}

DEVICE void scan(int column, const int* counts, int* con_adr, int* efc_adr, int* efc_J_adr, int* lists, int* totals,
                 int* totals_host, int* progress, int* progress_host, int begin, int shard_size, int contact_capacity,
                 int row_capacity, int jacobian_capacity, int row_beyond, int jacobian_beyond) {
  // the arena that the sum is for, in the order of PROGRESS; -1 if there is none
  const int arena = column == 0 ? 0 : column >= NUM_COLUMNS ? 1 + column - NUM_COLUMNS : -1;
  const int* values = counts + (column < NUM_COLUMNS ? column : COLUMN_ROWS) * shard_size;
  const int beyond = arena == 1 ? row_beyond : arena == 2 ? jacobian_beyond : 0;
  int* addresses = arena == 0 ? con_adr : arena == 1 ? efc_adr : efc_J_adr;
  // blocks of a GPU move four words at once, and load those of the next round before they add up the ones at hand
  const size_t places = size_t(values) | (arena >= 0 ? size_t(addresses + begin) : 0);
  const bool fours = SIMENGINE_GPU && places % sizeof(FourInts) == 0 && shard_size % 4 == 0;
  int sum = 0, next[SCAN_ITEMS];
  load_items(values, SCAN_ITEMS * lane(), shard_size, fours, next);
  for (int base = 0; base < shard_size; base += SCAN_ITEMS * LANES) {
    const int first = base + SCAN_ITEMS * lane();
    int x[SCAN_ITEMS], own = 0, total;
    for (int k = 0; k < SCAN_ITEMS; ++k) {
      x[k] = next[k] <= beyond ? 0 : next[k];
      own += x[k];
    }
    load_items(values, first + SCAN_ITEMS * LANES, shard_size, fours, next);
    int before = sum + lane_scan(own, &total);
    if (arena >= 0) {
      // (1) the worlds' addresses in the shard's arena
      store_addresses(addresses + begin, first, shard_size, fours, before, x);
    } else if (column != COLUMN_ROWS) {
      // (2) the list of the column's worlds, in ascending order
      for (int k = 0; k < SCAN_ITEMS && first + k < shard_size; ++k) {
        if (x[k]) lists[column * shard_size + before] = begin + first + k;
        before += x[k];
      }
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
