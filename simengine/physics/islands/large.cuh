// Large islands: functions shared by the solvers of islands with many blocks. Rows touch one or two blocks of dofs, and
// the inertia is block-diagonal; neither is ever stored over all dofs.
//
// A run is a maximal sequence of consecutive rows that touch the same blocks. The Hessian M + J' W J, where W are the
// second derivatives of the rows' cost, has a diagonal block for each block of dofs, and an off-diagonal block for each
// run that touches two blocks. Two runs that touch the same two blocks have one each, and the Hessian contains their
// sum. Layout of the Hessian of an island, in words:
//
//   for each block of n dofs             n x n, then n x n of its Cholesky factor, then n x n of its inverse
//   for each run of n1 and n2 dofs       n1 x n2; none if the run touches one block only
#pragma once

#if SIMENGINE_GPU && LANES > 32
#define BODIES_BY_LANES  // rows of free bodies are read by four words
#if LANES <= 128         // huge islands have no factor, whose code would take registers from them
#define FACTOR_BY_LANES  // islands of small blocks have a sparse factor: large_factor.cuh
#endif
#endif

// A run from the side of one of its blocks: 2 run + side, the first word of its off-diagonal block in H, and the dofs
// of the other block, if there is one.
struct alignas(16) Link {
  int end, at, dof, n;
};

struct LargeIsland {
  int n, nblock, nrow, nrun, stride;
  const real *M, *J;  // qM_blocks of the world; rows of `stride` words
  int* blocks;        // BLOCK_WORDS words per block
  const int *dof_block, *row_block;
  int* run;           // RUN_WORDS words per run
  Link* link;         // the runs of each block, contiguous
  real* H;
#ifdef MATRIX_VECTORS
  struct SparseHessian* sparse;  // its factor on the host, or null
#endif
};

enum RunWord { RUN_ROW, RUN_END, RUN_AT, RUN_DOF1, RUN_SIZE1, RUN_DOF2, RUN_SIZE2, RUN_WORDS };
enum BlockWord { BLOCK_NUMBER, BLOCK_DOF, BLOCK_SIZE, BLOCK_AT, BLOCK_BEGIN, BLOCK_END, BLOCK_WORDS };

// Which dofs of the island the two parts of a row belong to; a row that touches one block has n2 = 0.
struct RowParts {
  int dof1, n1, dof2, n2;
};

DEVICE RowParts parts_of(const LargeIsland& s, int r) {
  const int *first = s.blocks + BLOCK_WORDS * s.row_block[2 * r], b2 = s.row_block[2 * r + 1];
  if (b2 < 0) return {first[BLOCK_DOF], first[BLOCK_SIZE], 0, 0};
  const int* second = s.blocks + BLOCK_WORDS * b2;
  return {first[BLOCK_DOF], first[BLOCK_SIZE], second[BLOCK_DOF], second[BLOCK_SIZE]};
}

DEVICE RowParts parts_of_run(const LargeIsland& s, int k) {
  const int* run = s.run + RUN_WORDS * k;
  return {run[RUN_DOF1], run[RUN_SIZE1], run[RUN_DOF2], run[RUN_SIZE2]};
}

// The island of a kernel's record, without its runs.
DEVICE LargeIsland large_island(const Model& m, const int* nefc, const real* qM_blocks, const real* efc_J,
                                int* island_blocks, const int* island_dof_block, const int* island_row_block,
                                int* island_runs, int* island_links, real* island_hessian_blocks) {
  LargeIsland s;
  s.n = m.nv();
  s.nblock = nefc[RECORD_BLOCKS - RECORD_ROWS];
  s.nrow = nefc[0];
  s.nrun = 0;
  s.stride = m.nJ();
  s.M = qM_blocks;
  s.J = efc_J;
  s.blocks = island_blocks;
  s.dof_block = island_dof_block;
  s.row_block = island_row_block;
  s.run = island_runs;
  s.link = reinterpret_cast<Link*>(island_links);
  s.H = island_hessian_blocks;
  return s;
}

// Find the runs of rows, the runs of each block, and the addresses of all matrices in H.
DEVICE void find_runs(LargeIsland& s) {
  const auto size = [&](int b) { return s.blocks[BLOCK_WORDS * b + BLOCK_SIZE]; };
  const int words = sums_before(
      s.nblock, [&](int b) { return 3 * size(b) * size(b); },
      [&](int b, int before) {
        s.blocks[BLOCK_WORDS * b + BLOCK_AT] = before;
        s.blocks[BLOCK_WORDS * b + BLOCK_END] = 0;
      });
  s.nrun = sums_before(
      s.nrow, [&](int r) { return int(starts_run(s.row_block, r)); },
      [&](int r, int before) {
        if (starts_run(s.row_block, r)) s.run[RUN_WORDS * before + RUN_ROW] = r;
      });
  lane_sync();
  sums_before(
      s.nrun,
      [&](int k) {
        const RowParts parts = parts_of(s, s.run[RUN_WORDS * k + RUN_ROW]);
        return parts.n1 * parts.n2;
      },
      [&](int k, int before) { s.run[RUN_WORDS * k + RUN_AT] = words + before; });
  // the rank of each run among those of its blocks; two words of the run hold it until their final values are written
  const auto block = [&](int e) { return s.row_block[2 * s.run[RUN_WORDS * (e >> 1) + RUN_ROW] + (e & 1)]; };
  const auto rank = [&](int e) -> int& { return s.run[RUN_WORDS * (e >> 1) + RUN_DOF1 + (e & 1)]; };
  sums_before(
      2 * s.nrun, block, [](int e) { return 1; }, [&](int b) -> int& { return s.blocks[BLOCK_WORDS * b + BLOCK_END]; },
      [&](int e, int before) { rank(e) = before; });
  sums_before(
      s.nblock, [&](int b) { return s.blocks[BLOCK_WORDS * b + BLOCK_END]; },
      [&](int b, int before) { s.blocks[BLOCK_WORDS * b + BLOCK_BEGIN] = before; });
  lane_sync();
  LANE_FOR(e, 2 * s.nrun) {
    if (block(e) < 0) continue;
    const RowParts parts = parts_of(s, s.run[RUN_WORDS * (e >> 1) + RUN_ROW]);
    s.link[s.blocks[BLOCK_WORDS * block(e) + BLOCK_BEGIN] + rank(e)] = {
        e, s.run[RUN_WORDS * (e >> 1) + RUN_AT], e & 1 ? parts.dof1 : parts.dof2, e & 1 ? parts.n1 : parts.n2};
  }
  lane_sync();
  LANE_FOR(k, s.nrun) {
    const RowParts parts = parts_of(s, s.run[RUN_WORDS * k + RUN_ROW]);
    s.run[RUN_WORDS * k + RUN_END] = k + 1 < s.nrun ? s.run[RUN_WORDS * (k + 1) + RUN_ROW] : s.nrow;
    s.run[RUN_WORDS * k + RUN_DOF1] = parts.dof1;
    s.run[RUN_WORDS * k + RUN_SIZE1] = parts.n1;
    s.run[RUN_WORDS * k + RUN_DOF2] = parts.dof2;
    s.run[RUN_WORDS * k + RUN_SIZE2] = parts.n2;
  }
  LANE_FOR(b, s.nblock) s.blocks[BLOCK_WORDS * b + BLOCK_END] += s.blocks[BLOCK_WORDS * b + BLOCK_BEGIN];
  lane_sync();
}

// Dot product of two short rows; most have six entries, those of a free body.
DEVICE real short_dot(const real* a, const real* b, int n) {
  real sum = 0;
  if (n == 6) {
    for (int i = 0; i < 6; ++i) sum = fma_(a[i], b[i], sum);
    return sum;
  }
  ROLLED for (int i = 0; i < n; ++i) sum = fma_(a[i], b[i], sum);
  return sum;
}

DEVICE void short_add(real* out, real factor, const real* a, int n) {
  if (n == 6) {
    for (int i = 0; i < 6; ++i) out[i] = fma_(factor, a[i], out[i]);
    return;
  }
  ROLLED for (int i = 0; i < n; ++i) out[i] = fma_(factor, a[i], out[i]);
}

// Dot product of a and b over all lanes; a single lane adds up four partial sums in parallel.
DEVICE real lanes_dot(const real* a, const real* b, int n) {
#if LANES == 1
  real sum[4] = {0, 0, 0, 0};
  int i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int q = 0; q < 4; ++q) sum[q] = fma_(a[i + q], b[i + q], sum[q]);
  }
  for (; i < n; ++i) sum[0] = fma_(a[i], b[i], sum[0]);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
#else
  real sum = 0;
  LANE_FOR(i, n) sum = fma_(a[i], b[i], sum);
  return lane_sum(sum);
#endif
}

#ifdef BODIES_BY_LANES
// A row of J over the dofs of two blocks of FACTOR_SIDE, or of one, by loads of four words.
struct RowOfBodies {
  real4_storage part[FACTOR_SIDE / 2];

  DEVICE_METHOD real word(int j) const {
    const real4_storage& four = part[j / 4];
    return j % 4 == 0 ? four.x : j % 4 == 1 ? four.y : j % 4 == 2 ? four.z : four.w;
  }
};

DEVICE bool is_of_bodies(const LargeIsland& s, int n1, int n2) {
  return s.stride == 2 * FACTOR_SIDE && n1 == FACTOR_SIDE && (n2 == FACTOR_SIDE || n2 == 0);
}

DEVICE RowOfBodies row_of_bodies(const LargeIsland& s, int r) {
  return *reinterpret_cast<const RowOfBodies*>(s.J + size_t(r) * (2 * FACTOR_SIDE));
}
#endif

// Row r of J times x.
DEVICE real large_row_dot(const LargeIsland& s, int r, const real* x) {
  const RowParts p = parts_of(s, r);
#ifdef BODIES_BY_LANES
  if (is_of_bodies(s, p.n1, p.n2)) {
    const RowOfBodies row = row_of_bodies(s, r);
    real first = 0, second = 0;
    UNROLLED for (int j = 0; j < FACTOR_SIDE; ++j) first = fma_(row.word(j), x[p.dof1 + j], first);
    UNROLLED for (int j = 0; j < FACTOR_SIDE; ++j) {
      if (p.n2) second = fma_(row.word(FACTOR_SIDE + j), x[p.dof2 + j], second);
    }
    return first + second;
  }
#endif
  const real* J = s.J + size_t(r) * s.stride;
  return short_dot(J, x + p.dof1, p.n1) + short_dot(J + p.n1, x + p.dof2, p.n2);
}

// The end of the run that begins with row `begin`.
DEVICE int end_of_run(const LargeIsland& s, int begin) {
  int r = begin + 1;
  ROLLED while (r < s.nrow && !starts_run(s.row_block, r)) ++r;
  return r;
}

// out = J x
DEVICE void large_rows_times(const LargeIsland& s, const real* x, real* out) {
#if LANES == 1
  for (int begin = 0, end; begin < s.nrow; begin = end) {
    const RowParts p = parts_of(s, begin);
    const real *J = s.J + size_t(begin) * s.stride, *x1 = x + p.dof1, *x2 = x + p.dof2;
    end = end_of_run(s, begin);
    if (p.n1 == 6 && p.n2 == 6) {
      real first[6], second[6];
      for (int i = 0; i < 6; ++i) first[i] = x1[i], second[i] = x2[i];
      for (int r = begin; r < end; ++r, J += s.stride) {
        out[r] = short_dot(J, first, 6) + short_dot(J + 6, second, 6);
      }
      continue;
    }
    for (int r = begin; r < end; ++r, J += s.stride) {
      out[r] = short_dot(J, x1, p.n1) + short_dot(J + p.n1, x2, p.n2);
    }
  }
#else
  LANE_FOR(r, s.nrow) out[r] = large_row_dot(s, r, x);
#endif
}

// out = M x
DEVICE void large_inertia(const Model& m, const LargeIsland& s, const real* x, real* out) {
  LANE_FOR(v, s.n) {
    const int* words = s.blocks + BLOCK_WORDS * s.dof_block[v];
    const int dof = words[BLOCK_DOF], n = words[BLOCK_SIZE];
    out[v] = short_dot(s.M + m.block_adr()[words[BLOCK_NUMBER]] + (v - dof) * n, x + dof, n);
  }
}

// out = J' f + y, or J' f if y is null. J may be any matrix whose rows have the layout of the island's rows.
DEVICE void large_forces(const LargeIsland& s, const real* J, const real* f, const real* y, real* out) {
#if LANES == 1
  for (int v = 0; v < s.n; ++v) out[v] = y ? y[v] : R(0.0);
  for (int begin = 0, end; begin < s.nrow; begin = end) {
    const RowParts p = parts_of(s, begin);
    end = end_of_run(s, begin);
#ifdef MATRIX_VECTORS
    if (p.n1 <= VECTOR_WIDTH && p.n2 <= VECTOR_WIDTH) {
      Lanes first = load_words(out + p.dof1, p.n1), second = load_words(out + p.dof2, p.n2);
      for (int r = begin; r < end; ++r) {
        if (f[r] == 0) continue;
        const real* row = J + size_t(r) * s.stride;
        first = vector_fma(every(f[r]), load_words(row, p.n1), first);
        second = vector_fma(every(f[r]), load_words(row + p.n1, p.n2), second);
      }
      store_words(out + p.dof1, first, p.n1);
      store_words(out + p.dof2, second, p.n2);
      continue;
    }
#endif
    for (int r = begin; r < end; ++r) {
      if (f[r] == 0) continue;
      const real* row = J + size_t(r) * s.stride;
      short_add(out + p.dof1, f[r], row, p.n1);
      short_add(out + p.dof2, f[r], row + p.n1, p.n2);
    }
  }
#else
  LANE_FOR(v, s.n) {
    const int* words = s.blocks + BLOCK_WORDS * s.dof_block[v];
    real sum = y ? y[v] : R(0.0);
    ROLLED for (int e = words[BLOCK_BEGIN]; e < words[BLOCK_END]; ++e) {
      const int end = s.link[e].end, *run = s.run + RUN_WORDS * (end >> 1);
      const int column = v - words[BLOCK_DOF] + (end & 1 ? run[RUN_SIZE1] : 0);
      OVERLAPPED for (int r = run[RUN_ROW]; r < run[RUN_END]; ++r) {
        sum = fma_(J[size_t(r) * s.stride + column], f[r], sum);
      }
    }
    out[v] = sum;
  }
#endif
}
