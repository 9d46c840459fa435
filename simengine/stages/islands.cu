// Which blocks of dofs are connected by constraint rows: the islands of MuJoCo documentation, "Computation", "Islands".
// They are numbered by their first block. Few steps a row, done by one lane in the order of rows: the labels live in
// scratch, and a world has many lanes' worth of other work beside it.

// The first block of what block b is connected to so far, shortening the way there.
DEVICE int find_root(int* root, int b) {
  while (root[b] != b) {
    root[b] = root[root[b]];
    b = root[b];
  }
  return b;
}

// Connect the blocks of every row, and mark the first of each row.
DEVICE void connect(int nefc, const int* efc_block, int* root, int* touched) {
  int last1 = -1, last2 = -1;
  ROLLED for (int r = 0; r < nefc; ++r) {
    const int b1 = efc_block[2 * r], b2 = efc_block[2 * r + 1];
    if (b1 == last1 && b2 == last2) continue;  // another row of the same contact
    last1 = b1;
    last2 = b2;
    touched[b1] = 1;
    if (b2 < 0) continue;
    const int root1 = find_root(root, b1), root2 = find_root(root, b2);
    root[root1 > root2 ? root1 : root2] = root1 > root2 ? root2 : root1;
  }
}

// (4) what the solver will need: islands of each class, and pieces of four words of inertia and Jacobians.
DEVICE void count_islands(int islands, const int* island_size, int* island_counts, int shard_size) {
  ROLLED for (int column = 0; column < NUM_ISLAND_COLUMNS; ++column) {
    int sum = 0;
    LANE_FOR(i, islands) {
      const int n = island_size[2 * i], rows = island_size[2 * i + 1];
      sum += column < NUM_ISLAND_CLASSES ? island_class(n) == column : island_words(column, n, rows);
    }
    sum = lane_sum_int(sum);
    if (lane() == 0) island_counts[column * shard_size] = sum;
  }
}

DEVICE void islands(const Model& m, const int* nefc, const int* efc_block, int* efc_place, int* block_island,
                    int* block_place, int* nisland, int* island_size, int* island_first, int* island_counts,
                    real* root, real* touched, int shard_size) {
  int *roots = reinterpret_cast<int*>(root), *marks = reinterpret_cast<int*>(touched);
  LANE_FOR(b, m.nblock()) {
    roots[b] = b;
    marks[b] = 0;
  }
  lane_sync();
  // (1) connected blocks have the same root, the first of them; a root is touched if any of its blocks is
  if (lane() == 0) {
    connect(nefc[0], efc_block, roots, marks);
    for (int b = 0; b < m.nblock(); ++b) marks[find_root(roots, b)] |= marks[b];
  }
  lane_sync();
  // (2) islands, their dofs in the order of the blocks and their rows in that of the world's
  int count = 0;
  if (lane() == 0) {
    for (int b = 0; b < m.nblock(); ++b) {
      const int first = find_root(roots, b);
      int island = -1;
      if (marks[first]) {
        island = first == b ? count++ : block_island[first];
        if (first == b) island_size[2 * island] = island_size[2 * island + 1] = 0;
        block_place[b] = island_size[2 * island];
        island_size[2 * island] += m.block_dofadr()[b + 1] - m.block_dofadr()[b];
      } else {
        block_place[b] = 0;
      }
      block_island[b] = island;
    }
    for (int r = 0; r < nefc[0]; ++r) efc_place[r] = island_size[2 * block_island[efc_block[2 * r]] + 1]++;
    nisland[0] = count;
    // (3) where those of each island begin
    int dofs = 0, rows = 0;
    for (int i = 0; i < m.nblock(); ++i) {
      island_first[2 * i] = dofs;
      island_first[2 * i + 1] = rows;
      if (i >= count) island_size[2 * i] = island_size[2 * i + 1] = 0;
      dofs += island_size[2 * i];
      rows += island_size[2 * i + 1];
    }
  }
  lane_sync();
  LANE_FOR(r, nefc[0]) efc_place[r] += island_first[2 * block_island[efc_block[2 * r]] + 1];
  count_islands(nisland[0], island_size, island_counts, shard_size);
  lane_sync();
}
