// The Hessian M + J' W J of a large island, stored by blocks, and conjugate gradients with it, preconditioned by the
// inverses of its diagonal blocks (Y. Saad, "Iterative Methods for Sparse Linear Systems", algorithm 9.1).
#pragma once

// Column c of W J at row r.
DEVICE real large_weighted(const Model& m, const LargeIsland& s, const Rows& rows, int r, const real* weight, int c) {
  const real* w = weight + MAX_CONE_ROWS * r;
  if (!in_cone(rows.type[r])) return w[0] * s.J[size_t(r) * s.stride + c];
  const int contact = rows.id[r], first = rows.address[contact], dim = m.cand_rows()[rows.cand[contact]];
  real sum = 0;
  ROLLED for (int k = 0; k < dim; ++k) sum = fma_(w[k], s.J[size_t(first + k) * s.stride + c], sum);
  return sum;
}

#if LANES == 1
// Add J' W J.
DEVICE void add_rows(const Model& m, const LargeIsland& s, const Rows& rows, const real* weight) {
  for (int k = 0; k < s.nrun; ++k) {
    const int *run = s.run + RUN_WORDS * k, n1 = run[RUN_SIZE1], n2 = run[RUN_SIZE2];
    const int* words = s.blocks + BLOCK_WORDS * s.row_block[2 * run[RUN_ROW]];
    real *H1 = s.H + words[BLOCK_AT], *beside = s.H + run[RUN_AT];
    real* H2 = n2 ? s.H + s.blocks[BLOCK_WORDS * s.row_block[2 * run[RUN_ROW] + 1] + BLOCK_AT] : H1;
    for (int e = 0; e < n1 * n2; ++e) beside[e] = 0;
#ifdef MATRIX_VECTORS
    if (n1 <= WIDEST_VECTOR_BLOCK && n2 <= WIDEST_VECTOR_BLOCK) {
      const RunSide side[2] = {{n1, 0, H1, n1}, {n2, n1, H2, n2}};
      add_run_in_vectors(m, s, rows, weight, run, side, beside, n2);
      continue;
    }
#endif
    for (int r = run[RUN_ROW]; r < run[RUN_END]; ++r) {
      if (!has_weight(rows, r, weight)) continue;
      const real* J = s.J + size_t(r) * s.stride;
      for (int i = 0; i < n1; ++i) {
        const real c = large_weighted(m, s, rows, r, weight, i);
        short_add(H1 + i * n1, c, J, n1);
        short_add(beside + i * n2, c, J + n1, n2);
      }
      for (int i = 0; i < n2; ++i) short_add(H2 + i * n2, large_weighted(m, s, rows, r, weight, n1 + i), J + n1, n2);
    }
  }
}
#else
// Add the contribution of run e / 2 to row i of a diagonal block and, if the block is the first of the run (e % 2 is
// 0), to row i of the run's off-diagonal block.
DEVICE void add_run(const Model& m, const LargeIsland& s, const Rows& rows, const real* weight, int e, int i, int n,
                    real* H) {
  const int* run = s.run + RUN_WORDS * (e >> 1);
  const int column = e & 1 ? run[RUN_SIZE1] : 0, n2 = e & 1 ? 0 : run[RUN_SIZE2];
  real* beside = s.H + run[RUN_AT] + i * n2;
  ROLLED for (int j = 0; j < n2; ++j) beside[j] = 0;
  ROLLED for (int r = run[RUN_ROW]; r < run[RUN_END]; ++r) {
    if (!has_weight(rows, r, weight)) continue;
    const real c = large_weighted(m, s, rows, r, weight, column + i), *J = s.J + size_t(r) * s.stride;
    short_add(H, c, J + column, n);
    short_add(beside, c, J + run[RUN_SIZE1], n2);
  }
}

// Add J' W J.
DEVICE void add_rows(const Model& m, const LargeIsland& s, const Rows& rows, const real* weight) {
  LANE_FOR(v, s.n) {
    const int *words = s.blocks + BLOCK_WORDS * s.dof_block[v], n = words[BLOCK_SIZE], i = v - words[BLOCK_DOF];
    ROLLED for (int e = words[BLOCK_BEGIN]; e < words[BLOCK_END]; ++e) {
      add_run(m, s, rows, weight, s.link[e].end, i, n, s.H + words[BLOCK_AT] + i * n);
    }
  }
}
#endif

// H = M + J' W J
DEVICE void large_hessian(const Model& m, const LargeIsland& s, const Rows& rows, const real* weight) {
  LANE_FOR(v, s.n) {
    const int *words = s.blocks + BLOCK_WORDS * s.dof_block[v], n = words[BLOCK_SIZE], i = v - words[BLOCK_DOF];
    const real* inertia = s.M + m.block_adr()[words[BLOCK_NUMBER]] + i * n;
    ROLLED for (int j = 0; j < n; ++j) s.H[words[BLOCK_AT] + i * n + j] = inertia[j];
  }
  add_rows(m, s, rows, weight);
  lane_sync();
}

// Entries from c on of column c of the inverse of L L', from L with inverted diagonal; the others follow by symmetry.
DEVICE void inverse_column(const real* L, int n, int c, real* inverse) {
  real* x = inverse + c * n;
  x[c] = L[c * n + c];
  ROLLED for (int i = c + 1; i < n; ++i) x[i] = -short_dot(L + i * n + c, x + c, i - c) * L[i * n + i];
  ROLLED for (int i = n - 1; i >= c; --i) {
    x[i] *= L[i * n + i];
    inverse[i * n + c] = x[i];
    ROLLED for (int j = c; j < i; ++j) x[j] = fma_(-L[i * n + j], x[i], x[j]);
  }
}

// Cholesky factor, with inverted diagonal, and inverse of each diagonal block; one lane factors each small block.
DEVICE void invert_blocks(const Model& m, const LargeIsland& s) {
  LANE_FOR(v, s.n) {
    const int *words = s.blocks + BLOCK_WORDS * s.dof_block[v], n = words[BLOCK_SIZE], i = v - words[BLOCK_DOF];
    real* L = s.H + words[BLOCK_AT] + n * n + i * n;
    ROLLED for (int j = 0; j < n; ++j) L[j] = j <= i ? (L - n * n)[j] : R(0.0);
  }
  lane_sync();
  LANE_FOR(b, s.nblock) {
    const int *words = s.blocks + BLOCK_WORDS * b, n = words[BLOCK_SIZE];
    if (n <= SMALL_BLOCK) lane_factor(s.H + words[BLOCK_AT] + n * n, n);
  }
  ROLLED for (int b = 0; b < s.nblock && m.nwidest() > SMALL_BLOCK; ++b) {
    const int *words = s.blocks + BLOCK_WORDS * b, n = words[BLOCK_SIZE];
    if (n > SMALL_BLOCK) mem_factor(s.H + words[BLOCK_AT] + n * n, n);
  }
  lane_sync();
  LANE_FOR(v, s.n) {
    const int *words = s.blocks + BLOCK_WORDS * s.dof_block[v], n = words[BLOCK_SIZE], i = v - words[BLOCK_DOF];
    real* pivot = s.H + words[BLOCK_AT] + n * n + i * n + i;
    *pivot = reciprocal_(*pivot);
  }
  lane_sync();
  LANE_FOR(v, s.n) {
    const int *words = s.blocks + BLOCK_WORDS * s.dof_block[v], n = words[BLOCK_SIZE];
    const real* L = s.H + words[BLOCK_AT] + n * n;
    inverse_column(L, n, v - words[BLOCK_DOF], s.H + words[BLOCK_AT] + 2 * n * n);
  }
  lane_sync();
}

// Dot product of n entries of a, which are `stride` words apart, and n contiguous entries of b.
DEVICE real strided_dot(const real* a, int stride, const real* b, int n) {
  real sum = 0;
  if (n == 6) {
    for (int i = 0; i < 6; ++i) sum = fma_(a[i * stride], b[i], sum);
    return sum;
  }
  ROLLED for (int i = 0; i < n; ++i) sum = fma_(a[i * stride], b[i], sum);
  return sum;
}

// out1 += B x2 and out2 += B' x1 for an n1 x n2 matrix B.
DEVICE void beside_times(const real* B, int n1, int n2, const real* x1, const real* x2, real* out1, real* out2) {
  for (int i = 0; i < n1; ++i) {
    real sum = 0;
    for (int j = 0; j < n2; ++j) {
      sum = fma_(B[i * n2 + j], x2[j], sum);
      out2[j] = fma_(B[i * n2 + j], x1[i], out2[j]);
    }
    out1[i] += sum;
  }
}

// The same for two free bodies. It uses local variables, because the compiler cannot know that the pointers do not
// alias.
DEVICE void beside_times_6(const real* B, const real* x1, const real* x2, real* out1, real* out2) {
  real other[6], sum2[6] = {0, 0, 0, 0, 0, 0}, sum1[6];
  for (int j = 0; j < 6; ++j) other[j] = x2[j];
  for (int i = 0; i < 6; ++i) {
    const real own = x1[i];
    sum1[i] = 0;
    for (int j = 0; j < 6; ++j) {
      sum1[i] = fma_(B[6 * i + j], other[j], sum1[i]);
      sum2[j] = fma_(B[6 * i + j], own, sum2[j]);
    }
  }
  for (int i = 0; i < 6; ++i) {
    out1[i] += sum1[i];
    out2[i] += sum2[i];
  }
}

// out = H x
DEVICE void hessian_times(const LargeIsland& s, const real* x, real* out) {
#if LANES == 1
  for (int b = 0; b < s.nblock; ++b) {
    const int *words = s.blocks + BLOCK_WORDS * b, dof = words[BLOCK_DOF], n = words[BLOCK_SIZE];
    for (int i = 0; i < n; ++i) out[dof + i] = short_dot(s.H + words[BLOCK_AT] + i * n, x + dof, n);
  }
  for (int k = 0; k < s.nrun; ++k) {
    const RowParts p = parts_of_run(s, k);
    const real* beside = s.H + s.run[RUN_WORDS * k + RUN_AT];
    if (p.n1 == 6 && p.n2 == 6) {
      beside_times_6(beside, x + p.dof1, x + p.dof2, out + p.dof1, out + p.dof2);
    } else if (p.n2) {
      beside_times(beside, p.n1, p.n2, x + p.dof1, x + p.dof2, out + p.dof1, out + p.dof2);
    }
  }
#else
  LANE_FOR(v, s.n) {
    const int *words = s.blocks + BLOCK_WORDS * s.dof_block[v], n = words[BLOCK_SIZE], i = v - words[BLOCK_DOF];
    real sum = short_dot(s.H + words[BLOCK_AT] + i * n, x + words[BLOCK_DOF], n);
    OVERLAPPED for (int e = words[BLOCK_BEGIN]; e < words[BLOCK_END]; ++e) {
      const Link link = s.link[e];
      const int first = link.end & 1 ? i : i * link.n, stride = link.end & 1 ? n : 1;
      sum += strided_dot(s.H + link.at + first, stride, x + link.dof, link.n);
    }
    out[v] = sum;
  }
#endif
}

// out = inverses of the diagonal blocks times x
DEVICE void precondition(const LargeIsland& s, const real* x, real* out) {
  LANE_FOR(v, s.n) {
    const int *words = s.blocks + BLOCK_WORDS * s.dof_block[v], n = words[BLOCK_SIZE];
    out[v] = short_dot(s.H + words[BLOCK_AT] + 2 * n * n + (v - words[BLOCK_DOF]) * n, x + words[BLOCK_DOF], n);
  }
}

// x = inv(H) b; stops when the norm of the residual is below `enough`, or after `most` iterations. Returns the number
// of iterations; `work` has four vectors.
DEVICE int conjugate_gradients(const Model& m, const LargeIsland& s, const real* b, real enough, int most, real* x,
                               real* work) {
  real *rest = work, *scaled = work + s.n, *along = work + 2 * s.n, *image = work + 3 * s.n;
  invert_blocks(m, s);
  precondition(s, b, scaled);
  LANE_FOR(v, s.n) {
    x[v] = 0;
    rest[v] = b[v];
    along[v] = scaled[v];
  }
  real size = lanes_dot(b, scaled, s.n);
  int iteration = 0;
  while (iteration < most) {
    lane_sync();
    hessian_times(s, along, image);
    const real curve = lanes_dot(along, image, s.n);
    if (!(curve > 0)) break;
    const real step = divide_(size, curve);
    LANE_FOR(v, s.n) {
      x[v] = fma_(step, along[v], x[v]);
      rest[v] = fma_(-step, image[v], rest[v]);
    }
    ++iteration;
    if (lanes_dot(rest, rest, s.n) <= enough * enough) break;
    lane_sync();
    precondition(s, rest, scaled);
    const real next = lanes_dot(rest, scaled, s.n), beta = divide_(next, size);
    size = next;
    LANE_FOR(v, s.n) along[v] = fma_(beta, along[v], scaled[v]);
  }
  lane_sync();
  return iteration;
}
