// Islands: blocks of dofs that constraint rows connect (MuJoCo documentation, "Computation", "Constraint islands").
// They are numbered in the order of their first blocks. A single lane uses union-find, row by row. Several lanes find
// the same labels in rounds (Y. Shiloach and U. Vishkin, J. Algorithms 3 (1982)), whose number grows with the logarithm
// of the number of blocks.

#if LANES == 1
// The first block that block b is connected to so far; shortens the path to it (path halving).
DEVICE int find_root(int* root, int b) {
  while (root[b] != b) {
    root[b] = root[root[b]];
    b = root[b];
  }
  return b;
}

// root[b] becomes the first of the blocks that rows connect with b.
DEVICE void connect(const Model& m, int nefc, const int* efc_block, int* root, int* label) {
  for (int b = 0; b < m.nblock(); ++b) root[b] = b;
  for (int r = 0; r < nefc; ++r) {
    const int b2 = efc_block[2 * r + 1];
    if (b2 < 0 || !starts_run(efc_block, r)) continue;
    const int root1 = find_root(root, efc_block[2 * r]), root2 = find_root(root, b2);
    root[root1 > root2 ? root1 : root2] = root1 > root2 ? root2 : root1;
  }
  for (int b = 0; b < m.nblock(); ++b) root[b] = root[root[b]];
}
#else
DEVICE void connect(const Model& m, int nefc, const int* efc_block, int* root, int* label) {
  LANE_FOR(b, m.nblock()) root[b] = b;
  lane_sync();
  int changed = 1;
  while (changed) {
    // every root takes the lowest root connected to it as label; then all blocks follow the labels to the end
    LANE_FOR(b, m.nblock()) label[b] = root[b];
    lane_sync();
    changed = 0;
    LANE_FOR(r, nefc) {
      const int b2 = efc_block[2 * r + 1];
      if (b2 < 0 || !starts_run(efc_block, r)) continue;
      const int root1 = root[efc_block[2 * r]], root2 = root[b2];
      if (root1 == root2) continue;
      lower_at(label + (root1 > root2 ? root1 : root2), root1 > root2 ? root2 : root1);
      changed = 1;
    }
    lane_sync();
    LANE_FOR(b, m.nblock()) {
      int first = label[b];
      while (label[first] != first) first = label[first];
      root[b] = first;
    }
    changed = lane_any(changed);
    lane_sync();
  }
}
#endif

// (1) number the islands in the order of their first blocks; returns the number of islands.
DEVICE int number_islands(const Model& m, int nefc, const int* efc_block, const int* root, int* label,
                          int* block_island) {
  LANE_FOR(b, m.nblock()) label[b] = 1;
  lane_sync();
  LANE_FOR(r, nefc) {
    if (starts_run(efc_block, r)) lower_at(label + root[efc_block[2 * r]], 0);
  }
  lane_sync();
  const int count = sums_before(
      m.nblock(), [&](int b) { return int(root[b] == b && label[b] == 0); },
      [&](int b, int before) { block_island[b] = label[b] == 0 ? before : -1; });
  lane_sync();
  LANE_FOR(b, m.nblock()) {
    if (root[b] != b) block_island[b] = block_island[root[b]];
  }
  lane_sync();
  return count;
}

// (2) sizes of the islands, and the index of each block and row in its island, in the order of the world.
DEVICE void measure_islands(const Model& m, int nefc, const int* efc_block, const int* block_island, int* efc_by_island,
                            int* block_island_dof, int* block_index, int* island_size) {
  const int* adr = m.block_dofadr();
  LANE_FOR(i, 4 * m.nblock()) island_size[i] = 0;
  LANE_FOR(b, m.nblock()) block_island_dof[b] = block_index[b] = 0;
  lane_sync();
  const auto island = [&](int b) { return block_island[b]; };
  sums_before(
      m.nblock(), island, [&](int b) { return adr[b + 1] - adr[b]; },
      [&](int i) -> int& { return island_size[4 * i]; }, [&](int b, int before) { block_island_dof[b] = before; });
  sums_before(
      m.nblock(), island, [](int b) { return 1; }, [&](int i) -> int& { return island_size[4 * i + 2]; },
      [&](int b, int before) { block_index[b] = before; });
  sums_before(
      nefc, [&](int r) { return block_island[efc_block[2 * r]]; }, [](int r) { return 1; },
      [&](int i) -> int& { return island_size[4 * i + 1]; }, [&](int r, int before) { efc_by_island[r] = before; });
}

// (3) size of the Hessian of each large island; large.cuh describes its layout.
DEVICE void measure_hessians(const Model& m, int nefc, const int* efc_block, const int* block_island,
                             int* island_size) {
  const int* adr = m.block_dofadr();
  const auto total = [&](int i) -> int& { return island_size[4 * i + 3]; };
  const auto nothing = [](int i, int before) {};
  const auto large = [&](int b) {
    const int island = block_island[b];
    return island >= 0 && is_large(m, island_size[4 * island]) ? island : -1;
  };
  sums_before(
      m.nblock(), large, [&](int b) { return 3 * (adr[b + 1] - adr[b]) * (adr[b + 1] - adr[b]); }, total, nothing);
  sums_before(
      nefc,
      [&](int r) { return efc_block[2 * r + 1] >= 0 && starts_run(efc_block, r) ? large(efc_block[2 * r]) : -1; },
      [&](int r) {
        const int b1 = efc_block[2 * r], b2 = efc_block[2 * r + 1];
        return (adr[b1 + 1] - adr[b1]) * (adr[b2 + 1] - adr[b2]);
      },
      total, nothing);
  LANE_FOR(i, m.nblock()) island_size[4 * i + 3] = (island_size[4 * i + 3] + 3) / 4;
  lane_sync();
}

// (5) what the solver needs: number of islands of each size class, and entries of all in each arena.
DEVICE void count_islands(const Model& m, int islands, const int* island_size, int* island_counts, int shard_size) {
  ROLLED for (int column = 0; column < NUM_ISLAND_COLUMNS; ++column) {
    int sum = 0;
    LANE_FOR(i, islands) {
      const int* size = island_size + 4 * i;
      sum += column < NUM_ISLAND_CLASSES ? island_class(m, size[0]) == column : island_pieces(m, column, size);
    }
    sum = lane_sum_int(sum);
    if (lane() == 0) island_counts[column * shard_size] = sum;
  }
}

DEVICE void islands(const Model& m, const int* nefc, const int* efc_block, int* efc_by_island, int* block_root,
                    int* block_label, int* block_island, int* block_island_dof, int* block_index, int* nisland,
                    int* island_size, int* island_first, int* island_counts, int shard_size) {
  connect(m, nefc[0], efc_block, block_root, block_label);
  lane_sync();
  const int count = number_islands(m, nefc[0], efc_block, block_root, block_label, block_island);
  measure_islands(m, nefc[0], efc_block, block_island, efc_by_island, block_island_dof, block_index, island_size);
  measure_hessians(m, nefc[0], efc_block, block_island, island_size);
  // (4) index of the first dof, row and block of each island
  for (int what = 0; what < 3; ++what) {
    sums_before(
        m.nblock(), [&](int i) { return island_size[4 * i + what]; },
        [&](int i, int before) { island_first[3 * i + what] = before; });
  }
  LANE_FOR(i, 1) nisland[0] = count;
  lane_sync();
  LANE_FOR(r, nefc[0]) efc_by_island[r] += island_first[3 * block_island[efc_block[2 * r]] + 1];
  count_islands(m, count, island_size, island_counts, shard_size);
  lane_sync();
}
