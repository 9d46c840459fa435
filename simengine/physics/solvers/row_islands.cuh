// Islands of the rows of a world. As in MuJoCo, constraints that share a kinematic tree, directly or through others,
// form an island and are solved separately from the rest. All rows of an equality or a contact are of one island, also
// those that move nothing and those that touch different trees.
#pragma once

#define MOST_TREE_BITS 32

DEVICE int lower(int a, int b) { return a < b ? a : b; }

// The trees that each row touches, as bits. On the GPU the lanes read one row together, each two columns of it.
DEVICE void trees_of_rows(const Model& m, const Rows& rows, unsigned* trees) {
  const int nv = m.nv(), stride = m.nvp();
#if SIMENGINE_GPU && LANES <= 32
  ROLLED for (int first = 0; first < rows.n; first += LANES) {
    const int count = lower(rows.n - first, LANES);
    unsigned touched = 0;
    ROLLED for (int own = lane(); own - lane() < nv; own += 2 * LANES) {
      const bool one = own < nv, two = own + LANES < nv;
      const unsigned tree = one ? 1u << m.dof_treeid()[own] : 0, other = two ? 1u << m.dof_treeid()[own + LANES] : 0;
      const real* J = rows.J + size_t(first) * stride + own;
      OVERLAPPED for (int k = 0; k < count; ++k, J += stride) {
        const unsigned of_lane = (one && J[0] != 0 ? tree : 0) | (two && J[LANES] != 0 ? other : 0);
        const unsigned of_row = lane_or(of_lane);
        if (k == lane()) touched |= of_row;
      }
    }
    if (lane() < count) trees[first + lane()] = touched;
  }
#elif defined(MATRIX_VECTORS)
  for (int r = 0; r < rows.n; ++r) {
    const real* row = rows.J + size_t(r) * stride;
    unsigned touched = 0;
    for (int v = 0; v < nv; v += VECTOR_WIDTH) {
      unsigned there = bits_of(load_words(row + v, nv - v) != Lanes{});
      for (; there; there &= there - 1) touched |= 1u << m.dof_treeid()[v + __builtin_ctz(there)];
    }
    trees[r] = touched;
  }
#else
  LANE_FOR(r, rows.n) {
    unsigned touched = 0;
    for (int v = 0; v < nv; ++v) touched |= unsigned(rows.J[size_t(r) * stride + v] != 0) << m.dof_treeid()[v];
    trees[r] = touched;
  }
#endif
  lane_sync();
}

// Number of rows of the constraint whose first row is r; 0 for its other rows.
DEVICE int rows_of_constraint(const Rows& rows, int r) {
  const auto same = [&](int k) { return rows.type[k] == rows.type[r] && rows.id[k] == rows.id[r]; };
  if (r > 0 && same(r - 1)) return 0;
  int end = r + 1;
  while (end < rows.n && same(end)) ++end;
  return end - r;
}

// Call visit(t) for each tree t that the `dim` rows from r touch; several times for some. `trees` has the trees of each
// row as bits, or is null.
template <class Visit>
DEVICE void for_each_tree(const Model& m, const Rows& rows, const unsigned* trees, int r, int dim, const Visit& visit) {
  if (trees) {
    unsigned left = 0;
    ROLLED for (int i = 0; i < dim; ++i) left |= trees[r + i];
    ROLLED for (int t = 0; left; ++t, left >>= 1) {
      if (left & 1) visit(t);
    }
    return;
  }
  const int stride = m.nvp();
  ROLLED for (int i = 0; i < dim; ++i) {
    const real* J = rows.J + size_t(r + i) * stride;
    OVERLAPPED for (int v = 0; v < m.nv(); ++v) {
      if (J[v] != 0) visit(m.dof_treeid()[v]);
    }
  }
}

// Sort the rows by island. An island has the number of its lowest tree; rows without trees have the number of trees,
// and the later rows of cones one more. `tree` receives each tree's island.
DEVICE void find_islands(const Model& m, const Rows& rows, int* efc_island, int* efc_order, int* tree) {
  const int n = rows.n;
#if defined(MOST_VECTOR_ROWS) && !defined(TILE)
  if (one_island(m, rows, efc_island, efc_order, tree)) return;
#endif
  // until the order is known, its memory holds the trees of the rows
  unsigned* trees = m.ntree() <= MOST_TREE_BITS ? reinterpret_cast<unsigned*>(efc_order) : nullptr;
  if (trees) trees_of_rows(m, rows, trees);
  LANE_FOR(t, m.ntree()) tree[t] = t;
  // each sweep gives all trees of a row the lowest number among them, until no row has two numbers
  while (true) {
    lane_sync();
    int mixed = 0;
    LANE_FOR(r, n) {
      const int dim = rows_of_constraint(rows, r);
      int lowest = m.ntree(), highest = -1;
      for_each_tree(m, rows, trees, r, dim, [&](int t) {
        lowest = lower(lowest, tree[t]);
        highest = tree[t] > highest ? tree[t] : highest;
      });
      ROLLED for (int i = 0; i < dim; ++i) efc_island[r + i] = lowest;
      mixed |= lowest < highest;
    }
    if (!lane_any(mixed)) break;
    lane_sync();
    LANE_FOR(r, n) {
      const int dim = rows_of_constraint(rows, r), lowest = efc_island[r];
      if (dim) for_each_tree(m, rows, trees, r, dim, [&](int t) { lower_at(tree + t, lowest); });
    }
  }
  lane_sync();
  LANE_FOR(r, n) {
    if (!rows_together(m, rows, r)) efc_island[r] = m.ntree() + 1;
  }
  lane_sync();
  int others = 0;
  LANE_FOR(r, n) others |= efc_island[r] != efc_island[0];
  if (!lane_any(others)) {
    LANE_FOR(r, n) efc_order[r] = r;
    lane_sync();
    return;
  }
#if LANES == 1 && !SIMENGINE_GPU
  int placed = 0;
  for (int island = 0; placed < n; ++island) {
    for (int r = 0; r < n; ++r) {
      if (efc_island[r] == island) efc_order[placed++] = r;
    }
  }
  return;
#endif
  LANE_FOR(r, n) {
    int place = 0;
    const int own = efc_island[r];
    OVERLAPPED for (int k = 0; k < n; ++k) place += efc_island[k] < own || (efc_island[k] == own && k < r);
    efc_order[place] = r;
  }
  lane_sync();
}

// Number of rows that open something in an island.
DEVICE int rows_of_island(const Rows& rows, const int* efc_island, int island) {
  int found = 0;
  LANE_FOR_LOADS(r, rows.n) found += efc_island[r] == island;
  return lane_sum_int(found);
}
