// The Hessian M + J' W J of a large island by blocks, and conjugate gradients with it, preconditioned by the inverses of
// its blocks on the diagonal (Y. Saad, "Iterative Methods for Sparse Linear Systems", algorithm 9.1).
#pragma once

// Column c of W J at row r.
DEVICE real large_weighted(const Model& m, const LargeIsland& s, const Rows& rows, int r, const real* weight, int c) {
  const real* w = weight + MAX_CONE_ROWS * r;
  if (rows.type[r] != ROW_CONTACT_ELLIPTIC) return w[0] * s.J[size_t(r) * s.stride + c];
  const int contact = rows.id[r], first = rows.address[contact], dim = m.cand_rows()[rows.cand[contact]];
  real sum = 0;
  ROLLED for (int k = 0; k < dim; ++k) sum = fma_(w[k], s.J[size_t(first + k) * s.stride + c], sum);
  return sum;
}

// Add to row i of a block on the diagonal, and of what is beside it, what run e / 2 gives: e % 2 says on which side of
// the run the block is. Blocks beside the diagonal belong to the first block of the run.
DEVICE void add_run(const Model& m, const LargeIsland& s, const Rows& rows, const real* weight, int e, int i, int n,
                    real* H) {
  const int k = e >> 1, first = s.run[2 * k], end = run_end(s, k);
  const RowParts p = parts_of(s, first);
  const int column = e & 1 ? p.n1 : 0, n2 = e & 1 ? 0 : p.n2;
  real* beside = s.H + s.run[2 * k + 1] + i * n2;
  ROLLED for (int j = 0; j < n2; ++j) beside[j] = 0;
  ROLLED for (int r = first; r < end; ++r) {
    if (!has_weight(rows, r, weight)) continue;
    const real c = large_weighted(m, s, rows, r, weight, column + i), *J = s.J + size_t(r) * s.stride;
    short_add(H, c, J + column, n);
    short_add(beside, c, J + p.n1, n2);
  }
}

// H = M + J' W J
DEVICE void large_hessian(const Model& m, const LargeIsland& s, const Rows& rows, const real* weight) {
  LANE_FOR(v, s.n) {
    const int* words = s.blocks + BLOCK_WORDS * s.dof_block[v];
    const int n = words[BLOCK_SIZE], i = v - words[BLOCK_DOF];
    const real* inertia = s.M + m.block_adr()[words[BLOCK_NUMBER]] + i * n;
    real* H = s.H + words[BLOCK_AT] + i * n;
    ROLLED for (int j = 0; j < n; ++j) H[j] = inertia[j];
    ROLLED for (int e = words[BLOCK_BEGIN]; e < words[BLOCK_END]; ++e) add_run(m, s, rows, weight, s.list[e], i, n, H);
  }
  lane_sync();
}

// The Cholesky factor and the inverse of each block on the diagonal; small blocks are one lane's work.
DEVICE void invert_blocks(const LargeIsland& s) {
  LANE_FOR(v, s.n) {
    const int* words = s.blocks + BLOCK_WORDS * s.dof_block[v];
    const int n = words[BLOCK_SIZE], i = v - words[BLOCK_DOF];
    real* L = s.H + words[BLOCK_AT] + n * n + i * n;
    ROLLED for (int j = 0; j < n; ++j) L[j] = j <= i ? (L - n * n)[j] : R(0.0);
  }
  lane_sync();
  LANE_FOR(b, s.nblock) {
    const int *words = s.blocks + BLOCK_WORDS * b, n = words[BLOCK_SIZE];
    if (n <= SMALL_BLOCK) lane_factor(s.H + words[BLOCK_AT] + n * n, n);
  }
  ROLLED for (int b = 0; b < s.nblock; ++b) {
    const int *words = s.blocks + BLOCK_WORDS * b, n = words[BLOCK_SIZE];
    if (n > SMALL_BLOCK) mem_factor(s.H + words[BLOCK_AT] + n * n, n);
  }
  lane_sync();
  LANE_FOR(v, s.n) {
    const int* words = s.blocks + BLOCK_WORDS * s.dof_block[v];
    const int n = words[BLOCK_SIZE], c = v - words[BLOCK_DOF];
    const real* L = s.H + words[BLOCK_AT] + n * n;
    real* x = s.H + words[BLOCK_AT] + 2 * n * n + c * n;
    ROLLED for (int i = 0; i < n; ++i) {
      const real sum = i < c ? R(0.0) : short_dot(L + i * n, x, i);
      x[i] = i < c ? R(0.0) : divide_((i == c ? R(1.0) : R(0.0)) - sum, L[i * n + i]);
    }
    ROLLED for (int i = n - 1; i >= 0; --i) {
      x[i] = divide_(x[i], L[i * n + i]);
      ROLLED for (int j = 0; j < i; ++j) x[j] = fma_(-L[i * n + j], x[i], x[j]);
    }
  }
  lane_sync();
}

// out = H x
DEVICE void hessian_times(const LargeIsland& s, const real* x, real* out) {
#if LANES == 1
  for (int b = 0; b < s.nblock; ++b) {
    const int *words = s.blocks + BLOCK_WORDS * b, dof = words[BLOCK_DOF], n = words[BLOCK_SIZE];
    for (int i = 0; i < n; ++i) out[dof + i] = short_dot(s.H + words[BLOCK_AT] + i * n, x + dof, n);
  }
  for (int k = 0; k < s.nrun; ++k) {
    const RowParts p = parts_of(s, s.run[2 * k]);
    const real* beside = s.H + s.run[2 * k + 1];
    for (int i = 0; p.n2 && i < p.n1; ++i) {
      out[p.dof1 + i] += short_dot(beside + i * p.n2, x + p.dof2, p.n2);
      short_add(out + p.dof2, x[p.dof1 + i], beside + i * p.n2, p.n2);
    }
  }
#else
  LANE_FOR(v, s.n) {
    const int *words = s.blocks + BLOCK_WORDS * s.dof_block[v], n = words[BLOCK_SIZE], i = v - words[BLOCK_DOF];
    real sum = short_dot(s.H + words[BLOCK_AT] + i * n, x + words[BLOCK_DOF], n);
    ROLLED for (int e = words[BLOCK_BEGIN]; e < words[BLOCK_END]; ++e) {
      const int k = s.list[e] >> 1;
      const RowParts p = parts_of(s, s.run[2 * k]);
      const real* beside = s.H + s.run[2 * k + 1];
      if (!p.n2) continue;
      if (s.list[e] & 1) {
        ROLLED for (int j = 0; j < p.n1; ++j) sum = fma_(beside[j * p.n2 + i], x[p.dof1 + j], sum);
      } else {
        sum += short_dot(beside + i * p.n2, x + p.dof2, p.n2);
      }
    }
    out[v] = sum;
  }
#endif
}

// out = inverses of the blocks on the diagonal times x
DEVICE void precondition(const LargeIsland& s, const real* x, real* out) {
  LANE_FOR(v, s.n) {
    const int *words = s.blocks + BLOCK_WORDS * s.dof_block[v], n = words[BLOCK_SIZE];
    out[v] = short_dot(s.H + words[BLOCK_AT] + 2 * n * n + (v - words[BLOCK_DOF]) * n, x + words[BLOCK_DOF], n);
  }
}

// x = inv(H) b until the residual's length is below `enough` or `most` iterations are done, whose number is returned;
// `work` has four vectors.
DEVICE int conjugate_gradients(const LargeIsland& s, const real* b, real enough, int most, real* x, real* work) {
  real *rest = work, *scaled = work + s.n, *along = work + 2 * s.n, *image = work + 3 * s.n;
  invert_blocks(s);
  precondition(s, b, scaled);
  real size = 0;
  LANE_FOR(v, s.n) {
    x[v] = 0;
    rest[v] = b[v];
    along[v] = scaled[v];
    size = fma_(b[v], scaled[v], size);
  }
  size = lane_sum(size);
  int iteration = 0;
  while (iteration < most) {
    lane_sync();
    hessian_times(s, along, image);
    real curve = 0, length2 = 0, next = 0;
    LANE_FOR(v, s.n) curve = fma_(along[v], image[v], curve);
    curve = lane_sum(curve);
    if (!(curve > 0)) break;
    const real step = divide_(size, curve);
    LANE_FOR(v, s.n) {
      x[v] = fma_(step, along[v], x[v]);
      rest[v] = fma_(-step, image[v], rest[v]);
      length2 = fma_(rest[v], rest[v], length2);
    }
    ++iteration;
    length2 = lane_sum(length2);
    if (length2 <= enough * enough) break;
    lane_sync();
    precondition(s, rest, scaled);
    LANE_FOR(v, s.n) next = fma_(rest[v], scaled[v], next);
    next = lane_sum(next);
    const real beta = divide_(next, size);
    size = next;
    LANE_FOR(v, s.n) along[v] = fma_(beta, along[v], scaled[v]);
  }
  lane_sync();
  return iteration;
}
