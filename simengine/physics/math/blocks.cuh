// Block-diagonal matrices: for each block of dofs one dense symmetric matrix, row-major; block b starts at
// block_adr[b]. One lane does a small block alone, so that many are done in parallel. The lanes share the work on each
// larger block, in registers where each lane has a row.
#pragma once

#define SMALL_BLOCK 8

struct Block {
  int dof, n, at;  // first dof, number of dofs, index of the first word of its matrix
};

DEVICE Block block_of(const Model& m, int b) {
  const int dof = m.block_dofadr()[b];
  return {dof, m.block_dofadr()[b + 1] - dof, m.block_adr()[b]};
}

#if SIMENGINE_GPU
// The factor of a block of a free body, with diagonal(v, x) in place of the entry x of dof v, zero above the diagonal.
template <class Diagonal>
DEVICE FactorOfLane<FACTOR_SIDE> factor_of_body(real* L, const real* A, const Block& block, const Diagonal& diagonal) {
  FactorOfLane<FACTOR_SIDE> own;
  own.load(A + block.at);
  UNROLLED for (int i = 0; i < FACTOR_SIDE; ++i) own.l[i][i] = diagonal(block.dof + i, own.l[i][i]);
  own.factor();
  own.put(L + block.at);
  return own;
}
#endif

// mem_factor, done by one lane.
DEVICE void lane_factor(real* H, int n) {
#if SIMENGINE_GPU
  if (n == FACTOR_SIDE) {
    FactorOfLane<FACTOR_SIDE> own;
    own.load(H);
    own.factor();
    own.put(H);
    return;
  }
#endif
  ROLLED for (int k = 0; k < n; ++k) {
    real d = H[k * n + k];
    ROLLED for (int j = 0; j < k; ++j) d = fma_(-H[k * n + j], H[k * n + j], d);
    d = sqrt_(select(d <= 0, REAL_MAX, d));  // see mem_factor
    H[k * n + k] = d;
    const real inverse = R(1.0) / d;
    ROLLED for (int i = k + 1; i < n; ++i) {
      real x = H[i * n + k];
      ROLLED for (int j = 0; j < k; ++j) x = fma_(-H[i * n + j], H[k * n + j], x);
      H[i * n + k] = x * inverse;
    }
  }
}

// mem_solve, done by one lane.
DEVICE void lane_solve(real* x, const real* L, int n) {
#if SIMENGINE_GPU
  if (n == FACTOR_SIDE) {
    FactorOfLane<FACTOR_SIDE> own;
    own.load(L);
    own.solve(x);
    return;
  }
#endif
  ROLLED for (int k = 0; k < n; ++k) {
    x[k] = x[k] / L[k * n + k];
    ROLLED for (int i = k + 1; i < n; ++i) x[i] = fma_(-L[i * n + k], x[k], x[i]);
  }
  ROLLED for (int k = n - 1; k >= 0; --k) {
    x[k] = x[k] / L[k * n + k];
    ROLLED for (int i = 0; i < k; ++i) x[i] = fma_(-L[k * n + i], x[k], x[i]);
  }
}

// The lower triangle of a block that lanes share becomes its factor.
DEVICE void shared_factor(real* H, int n) {
#if SIMENGINE_GPU
  factor_by_squares(H, n);
#else
  mem_factor(H, n);
#endif
}

// In place: x becomes the solution of L L' x = x for such a block.
DEVICE void shared_solve(real* x, const real* L, int n) {
#if SIMENGINE_GPU
  solve_by_squares(x, L, n);
#else
  mem_solve(x, L, n);
#endif
}

// Whether the lanes have the rows of a block of n dofs in registers while they factor it.
DEVICE bool in_registers(int n) {
#if ONE_ROW_A_LANE
  return n > SMALL_BLOCK && n <= LANES;
#else
  return false;
#endif
}

// Whether one lane has the whole block in registers while it factors it.
DEVICE bool is_of_body(int n) { return SIMENGINE_GPU && n == FACTOR_SIDE; }

#if ONE_ROW_A_LANE
// Lane i has row i of a block of A in h, with diagonal(v, x) in place of the entry x of dof v. By symmetry it reads
// column i, so that neighbouring lanes read neighbouring words.
template <class Diagonal>
DEVICE void load_rows(real* h, const Block& block, const real* A, const Diagonal& diagonal) {
  const int i = lane(), n = block.n;
  const real own = i < n ? diagonal(block.dof + i, A[block.at + i * n + i]) : R(0.0);
#pragma unroll
  for (int j = 0; j < LANES; ++j) h[j] = i < n && j < n ? i == j ? own : A[block.at + j * n + i] : R(0.0);
}

// In place: x becomes the solution of the block's system, with diagonal(v, x) as in load_rows.
template <class Diagonal>
DEVICE void solve_rows(const Model& m, real* x, const Block& block, const real* A, const Diagonal& diagonal) {
  const bool own = lane() < block.n;
  real h[LANES];
  load_rows(h, block, A, diagonal);
  reg_pad(h, block.n);
  const real solved = reg_solve(h, own ? x[lane()] : R(0.0), block.n, m.column);
  lane_sync();
  if (own) x[lane()] = solved;
  lane_sync();
}
#endif

// L = the lower triangle of A, with diagonal(v, x) in place of the entry x of dof v, for blocks not in registers.
template <class Diagonal>
DEVICE void copy_lower(const Model& m, real* L, const real* A, const Diagonal& diagonal) {
  LANE_FOR(v, m.nv()) {
    const Block block = block_of(m, m.dof_block()[v]);
    if (in_registers(block.n) || is_of_body(block.n)) continue;
    const int i = v - block.dof, row = block.at + i * block.n;
    ROLLED for (int j = 0; j < block.n; ++j) L[row + j] = j <= i ? A[row + j] : R(0.0);
    L[row + i] = diagonal(v, L[row + i]);
  }
  lane_sync();
}

// Call alone(block) for each small block in one lane, and together(block) for each other block in all lanes.
template <class Alone, class Together>
DEVICE void each_block(const Model& m, const Alone& alone, const Together& together) {
  LANE_FOR(b, m.nblock()) {
    const Block block = block_of(m, b);
    if (block.n <= SMALL_BLOCK) alone(block);
  }
  lane_sync();
  ROLLED for (int b = 0; b < m.nblock() && m.nwidest() > SMALL_BLOCK; ++b) {
    const Block block = block_of(m, b);
    if (block.n > SMALL_BLOCK) together(block);
  }
  lane_sync();
}

// L = lower Cholesky factor of A, with diagonal(v, x) in place of the entry x of dof v, zero above the diagonal.
template <class Diagonal>
DEVICE void blocks_factor(const Model& m, real* L, const real* A, const Diagonal& diagonal) {
  copy_lower(m, L, A, diagonal);
  each_block(
      m,
      [&](const Block& block) {
#if SIMENGINE_GPU
        if (is_of_body(block.n)) {
          factor_of_body(L, A, block, diagonal);
          return;
        }
#endif
        lane_factor(L + block.at, block.n);
      },
      [&](const Block& block) {
#if ONE_ROW_A_LANE
        if (in_registers(block.n)) {
          real h[LANES];
          load_rows(h, block, A, diagonal);
          reg_factor<true>(h, L + block.at, block.n, m.column);
          return;
        }
#endif
        shared_factor(L + block.at, block.n);
      });
}

// In place: x becomes the solution of L L' x = x.
DEVICE void blocks_solve(const Model& m, real* x, const real* L) {
  each_block(
      m, [&](const Block& block) { lane_solve(x + block.dof, L + block.at, block.n); },
      [&](const Block& block) {
        if (in_registers(block.n)) chol_solve(x + block.dof, L + block.at, block.n);
        else shared_solve(x + block.dof, L + block.at, block.n);
      });
}

// In place: x becomes the solution of A x = x, with diagonal(v, x) in place of the entry x of dof v. L has room for the
// factors of blocks whose rows are not in registers.
template <class Diagonal>
DEVICE void blocks_solve(const Model& m, real* x, real* L, const real* A, const Diagonal& diagonal) {
  copy_lower(m, L, A, diagonal);
  each_block(
      m,
      [&](const Block& block) {
#if SIMENGINE_GPU
        if (is_of_body(block.n)) {
          factor_of_body(L, A, block, diagonal).solve(x + block.dof);
          return;
        }
#endif
        lane_factor(L + block.at, block.n);
        lane_solve(x + block.dof, L + block.at, block.n);
      },
      [&](const Block& block) {
#if ONE_ROW_A_LANE
        if (in_registers(block.n)) {
          solve_rows(m, x + block.dof, block, A, diagonal);
          return;
        }
#endif
        shared_factor(L + block.at, block.n);
        shared_solve(x + block.dof, L + block.at, block.n);
      });
}

DEVICE bool is_large(const Model& m, int n) { return n > m.large_island(); }

DEVICE int island_class(const Model& m, int n) {
  if (is_large(m, n)) return n > MOST_LARGE_DOFS ? HUGE_ISLANDS : LARGE_ISLANDS;
  int index = 0;
  while (index < LARGE_ISLANDS - 1 && n > ISLAND_BOUND(index)) ++index;
  return index;
}

// How many entries an island takes in an arena: one record, or pieces of four words of its inertia, of its Jacobian, or
// of its Hessian by blocks, as `column` says. `size` is its entry of island_size.
DEVICE int island_pieces(const Model& m, int column, const int* size) {
  const int n = size[0], rows = size[1];
  const bool large = is_large(m, n);
  if (column == COLUMN_ISLANDS) return 1;
  if (column == COLUMN_ISLAND_M) return large ? 0 : (n * n + 3) / 4;
  if (column == COLUMN_ISLAND_J) return rows * (large ? m.nJ() / 4 : (n + 3) / 4);
  return large ? size[3] : 0;
}

// For each i < n with key(i) >= 0, call out(i, sum of the weights of all earlier entries with the same key). total(key)
// must start as zero and receives the sum of the weights of all entries with that key.
template <class Key, class Weight, class Total, class Out>
DEVICE void sums_before(int n, Key key, Weight weight, Total total, Out out) {
  ROLLED for (int base = 0; base < n; base += LANES) {
    const int i = base + lane(), own = i < n ? key(i) : -1, x = own >= 0 ? weight(i) : 0;
    int all;
    bool first;
    const int before = lane_sum_of_key(own, x, &all, &first);
    if (own >= 0) out(i, total(own) + before);
    lane_sync();
    if (own >= 0 && first) total(own) += all;
    lane_sync();
  }
}

// For each i < n, call out(i, sum of the weights of all entries before i); returns the sum of all weights.
template <class Weight, class Out>
DEVICE int sums_before(int n, Weight weight, Out out) {
  int sum = 0;
  ROLLED for (int base = 0; base < n; base += LANES) {
    const int i = base + lane();
    int total;
    const int before = lane_scan(i < n ? weight(i) : 0, &total);
    if (i < n) out(i, sum + before);
    sum += total;
  }
  return sum;
}

// Does row r touch other blocks than the row before it? Rows of one pair of blocks are mostly consecutive.
DEVICE bool starts_run(const int* row_block, int r) {
  return r == 0 || row_block[2 * r] != row_block[2 * r - 2] || row_block[2 * r + 1] != row_block[2 * r - 1];
}
