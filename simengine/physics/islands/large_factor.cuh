// Newton's direction in a large island of small blocks by a sparse factor of its Hessian, by the lanes of a GPU.
//
// Blocks have FACTOR_SIDE rows and columns; those of fewer dofs are filled up with the identity. Row k of the matrix,
// in the order of elimination, holds its own block and those beside it in which the factor has entries. H = U' U is
// factored in place, as in large_sparse.cuh, in shared memory:
//
//   for each row k      U_kk = the factor of H_kk,  U_kj = U_kk'^-1 H_kj for its columns j,  y_k = U_kk'^-1 b_k
//                       H_ij -= U_ki' U_kj  and  b_j -= U_kj' y_k  for its columns i <= j
//   backward            x_k = U_kk^-1 (y_k - sum over j of U_kj x_j)
//
// Rows of a round (block_order.cuh) change other blocks each: a warp has one. All lanes share the row of a round of
// one.
#pragma once

#ifdef FACTOR_BY_LANES
#define FACTOR_BLOCK (FACTOR_SIDE * FACTOR_SIDE)

struct BlockFactor {
  real *block, *y;  // blocks by rows, and the right side by places
  BlockOrder* order;

  DEVICE_METHOD real* row_of(int number, int i) const { return block + FACTOR_BLOCK * number + FACTOR_SIDE * i; }
};

// The factor of an island, with its blocks in their order; without memory if the island has large blocks, or if there
// is no room. `memory` has the words that `factor_words` of simengine/kernels/kernel.py counts.
DEVICE BlockFactor block_factor(const Model& m, const LargeIsland& s, real* memory) {
  const int most = m.nblock() < MOST_FACTORED_BLOCKS ? m.nblock() : MOST_FACTORED_BLOCKS, all = most * (most + 1) / 2;
  const int few = all < USUAL_BLOCKS_OF_ROW * most ? all : USUAL_BLOCKS_OF_ROW * most;
  const int room = few < MOST_BLOCKS_OF_FACTOR ? few : MOST_BLOCKS_OF_FACTOR;
  BlockFactor f;
  f.block = memory;
  f.y = memory + FACTOR_BLOCK * room;
  f.order = reinterpret_cast<BlockOrder*>(f.y + (FACTOR_SIDE * most + 3 & ~3));
  if (m.nwidest() > FACTOR_SIDE || s.nblock > most || !find_order(s, f.order, room)) f.block = 0;
  return f;
}

// Row i of a block, and of the one beside it.
struct FactorRow {
  real own[FACTOR_SIDE], beside[FACTOR_SIDE];
};

// Add the rows of a run to row i of a block of FACTOR_SIDE dofs, and to the one beside it if there are two.
DEVICE void add_run_of_bodies(const Model& m, const LargeIsland& s, const Rows& rows, const real* weight,
                              const int* run, bool second, int i, bool two, FactorRow* row) {
  const int column = second ? FACTOR_SIDE + i : i;
  _Pragma("unroll 2") for (int r = run[RUN_ROW]; r < run[RUN_END]; ++r) {
    if (!has_weight(rows, r, weight)) continue;
    const RowOfBodies J = row_of_bodies(s, r);
    const real c = large_weighted(m, s, rows, r, weight, column);
    UNROLLED for (int j = 0; j < FACTOR_SIDE; ++j) {
      const real first = J.word(j), last = J.word(FACTOR_SIDE + j);
      row->own[j] = fma_(c, second ? last : first, row->own[j]);
      if (two) row->beside[j] = fma_(c, second ? first : last, row->beside[j]);
    }
  }
}

// Add the rows of a run to row i of a block, and to the one beside it, which has n2 columns or none.
DEVICE void add_run_to_row(const Model& m, const LargeIsland& s, const Rows& rows, const real* weight, const Link& link,
                           int i, int n, int n2, FactorRow* row) {
  const int *run = s.run + RUN_WORDS * (link.end >> 1), second = link.end & 1;
  const int column = second ? run[RUN_SIZE1] : 0, other = second ? 0 : n;
  if (is_of_bodies(s, n, link.n)) {
    add_run_of_bodies(m, s, rows, weight, run, second, i, n2 > 0, row);
    return;
  }
  OVERLAPPED for (int r = run[RUN_ROW]; r < run[RUN_END]; ++r) {
    if (!has_weight(rows, r, weight)) continue;
    const real c = large_weighted(m, s, rows, r, weight, column + i), *J = s.J + size_t(r) * s.stride;
    UNROLLED for (int j = 0; j < FACTOR_SIDE; ++j) {
      if (j < n) row->own[j] = fma_(c, J[column + j], row->own[j]);
    }
    UNROLLED for (int j = 0; j < FACTOR_SIDE; ++j) {
      if (j < n2) row->beside[j] = fma_(c, J[other + j], row->beside[j]);
    }
  }
}

// H = M + J' W J and y = b. A lane makes a row of H; of two blocks that share rows of J, the row of the first place has
// what is between them.
DEVICE void factor_assemble(const Model& m, const LargeIsland& s, const Rows& rows, const real* weight, const real* b,
                            const BlockFactor& f) {
  LANE_FOR(e, FACTOR_BLOCK * f.order->first[s.nblock]) f.block[e] = 0;
  lane_sync();
  LANE_FOR(t, FACTOR_SIDE * s.nblock) {
    const int k = t / FACTOR_SIDE, i = t % FACTOR_SIDE, first = f.order->first[k];
    const int *words = s.blocks + BLOCK_WORDS * f.order->block[k], n = words[BLOCK_SIZE];
    const real* inertia = s.M + m.block_adr()[words[BLOCK_NUMBER]] + i * n;
    FactorRow row;
    UNROLLED for (int j = 0; j < FACTOR_SIDE; ++j) {
      row.own[j] = i < n && j < n ? inertia[j] : i == j ? R(1.0) : R(0.0);
    }
    ROLLED for (int e = words[BLOCK_BEGIN]; i < n && e < words[BLOCK_END]; ++e) {
      const Link link = s.link[e];
      const int to = link.n ? f.order->place[s.dof_block[link.dof]] : 0, n2 = to > k ? link.n : 0;
      real* beside = f.row_of(to > k ? f.order->at(k, to) : first, i);
      UNROLLED for (int j = 0; j < FACTOR_SIDE; ++j) row.beside[j] = beside[j];
      add_run_to_row(m, s, rows, weight, link, i, n, n2, &row);
      if (!n2) continue;
      UNROLLED for (int j = 0; j < FACTOR_SIDE; ++j) beside[j] = row.beside[j];
    }
    UNROLLED for (int j = 0; j < FACTOR_SIDE; ++j) f.row_of(first, i)[j] = row.own[j];
    f.y[t] = i < n ? b[words[BLOCK_DOF] + i] : R(0.0);
  }
  lane_sync();
}

// The factor of a block on the diagonal, in registers: u[q][j] for q < j, and the inverses of the pivots.
struct FactorOfBlock {
  real u[FACTOR_SIDE][FACTOR_SIDE], inverse[FACTOR_SIDE];

  DEVICE_METHOD void factor(const real* H) {
    UNROLLED for (int q = 0; q < FACTOR_SIDE; ++q) {
      UNROLLED for (int j = q; j < FACTOR_SIDE; ++j) u[q][j] = H[FACTOR_SIDE * q + j];
    }
    UNROLLED for (int q = 0; q < FACTOR_SIDE; ++q) {
      inverse[q] = reciprocal_sqrt_(u[q][q] <= 0 ? REAL_MAX : u[q][q]);  // see mem_factor
      UNROLLED for (int j = q + 1; j < FACTOR_SIDE; ++j) u[q][j] *= inverse[q];
      UNROLLED for (int r = q + 1; r < FACTOR_SIDE; ++r) {
        UNROLLED for (int j = r; j < FACTOR_SIDE; ++j) u[r][j] = fma_(-u[q][r], u[q][j], u[r][j]);
      }
    }
  }
  // x = U'^-1 x, for entries that are `stride` words apart.
  DEVICE_METHOD void forward(real* x, int stride) const {
    real own[FACTOR_SIDE];
    UNROLLED for (int q = 0; q < FACTOR_SIDE; ++q) own[q] = x[q * stride];
    UNROLLED for (int q = 0; q < FACTOR_SIDE; ++q) {
      own[q] *= inverse[q];
      UNROLLED for (int r = q + 1; r < FACTOR_SIDE; ++r) own[r] = fma_(-u[q][r], own[q], own[r]);
    }
    UNROLLED for (int q = 0; q < FACTOR_SIDE; ++q) x[q * stride] = own[q];
  }
  // To memory, with the inverses on the diagonal.
  DEVICE_METHOD void put(real* U) const {
    UNROLLED for (int q = 0; q < FACTOR_SIDE; ++q) {
      U[FACTOR_SIDE * q + q] = inverse[q];
      UNROLLED for (int j = q + 1; j < FACTOR_SIDE; ++j) U[FACTOR_SIDE * q + j] = u[q][j];
    }
  }
};

// H_ij -= U_ki' U_kj and y_j -= U_kj' y_k, for the `beside` blocks that follow block `first` in row k. A lane has a row
// of a block, or an entry of y; `lane` is its number among `lanes`.
DEVICE void factor_subtract(const BlockFactor& f, int k, int first, int beside, int lane, int lanes) {
  const int of_blocks = FACTOR_SIDE * beside * (beside + 1) / 2;
  ROLLED for (int t = lane; t < of_blocks + FACTOR_SIDE * beside; t += lanes) {
    if (t >= of_blocks) {
      const int e = (t - of_blocks) / FACTOR_SIDE, c = (t - of_blocks) % FACTOR_SIDE;
      const real *U = f.row_of(first + 1 + e, 0) + c, *y = f.y + FACTOR_SIDE * k;
      real* to = f.y + FACTOR_SIDE * f.order->column[first + 1 + e] + c;
      real x = *to;
      UNROLLED for (int q = 0; q < FACTOR_SIDE; ++q) x = fma_(-U[FACTOR_SIDE * q], y[q], x);
      *to = x;
      continue;
    }
    int high = 0, low = t / FACTOR_SIDE;  // of the two blocks
    ROLLED while (low > high) low -= ++high;
    const int i = t % FACTOR_SIDE, from = f.order->column[first + 1 + low], to = f.order->column[first + 1 + high];
    const real *left = f.row_of(first + 1 + low, 0) + i, *right = f.row_of(first + 1 + high, 0);
    real x[FACTOR_SIDE], *out = f.row_of(f.order->at(from, to), i);
    UNROLLED for (int j = 0; j < FACTOR_SIDE; ++j) x[j] = out[j];
    UNROLLED for (int q = 0; q < FACTOR_SIDE; ++q) {
      const real c = -left[FACTOR_SIDE * q];
      UNROLLED for (int j = 0; j < FACTOR_SIDE; ++j) x[j] = fma_(c, right[FACTOR_SIDE * q + j], x[j]);
    }
    UNROLLED for (int j = 0; j < FACTOR_SIDE; ++j) out[j] = x[j];
  }
}

// Row k of the backward substitution, by one warp: y_k becomes the solution. Lanes share the sum of each row of a
// block.
DEVICE void backward_row(const BlockFactor& f, int k) {
  constexpr int SHARES = WARP_LANES / FACTOR_SIDE;
  const int q = warp_lane() % FACTOR_SIDE, share = warp_lane() / FACTOR_SIDE;
  const int first = f.order->first[k], beside = f.order->first[k + 1] - first - 1;
  const real* U = f.row_of(first, 0);
  real sum = 0, x[FACTOR_SIDE];
  ROLLED for (int e = share; share < SHARES && e < beside; e += SHARES) {
    const real *row = f.row_of(first + 1 + e, q), *y = f.y + FACTOR_SIDE * f.order->column[first + 1 + e];
    UNROLLED for (int j = 0; j < FACTOR_SIDE; ++j) sum = fma_(row[j], y[j], sum);
  }
  real rest = f.y[FACTOR_SIDE * k + q];
  UNROLLED for (int p = 0; p < SHARES; ++p) rest -= warp_get(sum, FACTOR_SIDE * p + q);
  UNROLLED for (int r = 0; r < FACTOR_SIDE; ++r) x[r] = warp_get(rest, r);
  UNROLLED for (int r = FACTOR_SIDE - 1; r >= 0; --r) {
    x[r] *= U[FACTOR_SIDE * r + r];
    UNROLLED for (int i = 0; i < r; ++i) x[i] = fma_(-U[FACTOR_SIDE * i + r], x[r], x[i]);
  }
  if (warp_lane() == 0) {
    UNROLLED for (int r = 0; r < FACTOR_SIDE; ++r) f.y[FACTOR_SIDE * k + r] = x[r];
  }
}

// Backward substitution. Rows of a round do not need each other, so that a warp has each. Of rounds of one row that
// follow each other, the first warp has all, and the others do not wait between them.
DEVICE void factor_backward(const BlockFactor& f, int n) {
  bool alone = true;
  int rows;
  ROLLED for (int end = n; end > 0; end -= rows) {
    rows = f.order->rows[end - 1];
    if (rows > 1 || !alone) lane_sync();
    alone = rows == 1;
    ROLLED for (int r = warp_index(); r < rows; r += LANES / WARP_LANES) backward_row(f, end - rows + r);
    warp_sync();
  }
  lane_sync();
}

// Row k of the factor, and what it takes from other rows. All lanes have it, or those of a warp.
DEVICE void factor_row(const BlockFactor& f, int k, bool all) {
  const int number = all ? lane() : warp_lane(), lanes = all ? LANES : WARP_LANES;
  const int first = f.order->first[k], beside = f.order->first[k + 1] - first - 1, columns = FACTOR_SIDE * beside;
  FactorOfBlock own;  // each lane that needs it makes its own
  if (number <= columns) own.factor(f.row_of(first, 0));
  ROLLED for (int t = number; t <= columns; t += lanes) {
    if (t == columns) own.forward(f.y + FACTOR_SIDE * k, 1);
    else own.forward(f.row_of(first + 1 + t / FACTOR_SIDE, 0) + t % FACTOR_SIDE, FACTOR_SIDE);
  }
  if (all) {
    lane_sync();
  } else {
    warp_sync();
  }
  if (number == 0) own.put(f.row_of(first, 0));
  factor_subtract(f, k, first, beside, number, lanes);
}

// All rows of the factor, and both substitutions: y becomes the solution. A function of its own, in whose loops the
// solver's variables need no registers.
DEVICE_APART void factor_rows(real* block, real* y, BlockOrder* order, int n) {
  const BlockFactor f = {block, y, order};
  int rows;
  ROLLED for (int k = 0; k < n; k += rows) {
    rows = order->rows[k];
    const int first = rows == 1 ? 0 : warp_index();
    ROLLED for (int r = first; r < rows; r += LANES / WARP_LANES) factor_row(f, k + r, rows == 1);
    lane_sync();
  }
  factor_backward(f, n);
}

// x = inv(H) b, for H and y = b from factor_assemble; overwrites both.
DEVICE void factor_solve(const LargeIsland& s, const BlockFactor& f, real* x) {
  factor_rows(f.block, f.y, f.order, s.nblock);
  LANE_FOR(v, s.n) {
    const int b = s.dof_block[v];
    x[v] = f.y[FACTOR_SIDE * f.order->place[b] + v - s.blocks[BLOCK_WORDS * b + BLOCK_DOF]];
  }
  lane_sync();
}
#endif
