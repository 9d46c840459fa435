// Symmetric positive definite matrices with more rows than a warp has lanes, up to twice as many, in its registers.
//
// Kernels for models of such a size are compiled with MATRIX_ROWS, which is the number of rows padded to a multiple of
// four. So all indices of registers are constants, and no more are used than the model needs. In kernels over islands
// it is the most rows that an island has. A smaller one has its own stride, and leaves columns out, four at a time.
#pragma once

#ifdef MATRIX_ROWS
#define FAR_ROWS (MATRIX_ROWS - LANES)

// Lane i holds row i, in `near` the columns below LANES and in `far` the others. Of row LANES + i it holds the columns
// from LANES on in `corner`, because by symmetry the other columns are in `far` of all lanes. Rows from n on are those
// of the identity. `diagonal` is yet to be added to rows i and LANES + i.
struct WideRows {
  real near[LANES], far[FAR_ROWS], corner[FAR_ROWS], diagonal[2];
};

// The entries of one or two dofs per lane.
struct TwoDofs {
  real at[2];
};

#ifdef UNIT_ISLAND
DEVICE int wide_stride(int n) { return (n + 3) & ~3; }
DEVICE bool in_padding(int j, int n) { return j >= n; }
#else
DEVICE int wide_stride(int) { return MATRIX_ROWS; }
DEVICE bool in_padding(int j, int n) { return j >= MATRIX_ROWS - 3 && j >= n; }
#endif

// Are the four columns from LANES + j on, j being a multiple of four, beyond those of the matrix?
DEVICE bool beyond_far(int j, int n) { return LANES + j >= wide_stride(n); }

DEVICE TwoDofs two_load(const real* x, int n) {
  const int i = lane();
  return {{x[i], LANES + i < n ? x[LANES + i] : R(0.0)}};
}

DEVICE void two_store(real* x, const TwoDofs& y, int n) {
  const int i = lane();
  x[i] = y.at[0];
  if (LANES + i < n) x[LANES + i] = y.at[1];
}

DEVICE void wide_load(WideRows* h, const real* A, int n) {
  const int i = lane();
  const bool both = LANES + i < n;
#pragma unroll
  for (int j = 0; j < LANES; ++j) h->near[j] = A[j * n + i];
#pragma unroll
  for (int j = 0; j < FAR_ROWS; ++j) {
    const bool there = !in_padding(LANES + j, n);
    const real* row = A + (LANES + j) * n;
    h->far[j] = there ? row[i] : R(0.0);
    h->corner[j] = there && both ? row[LANES + i] : i == j ? R(1.0) : R(0.0);
  }
}

// A x for a matrix in memory; x is padded with zeros.
DEVICE TwoDofs wide_mul(const real* A, const real* x, int n) {
  // consecutive lanes read consecutive words, which are a column by symmetry; a lane with one dof reads that twice
  const real *near = A + lane(), *far = near + (LANES + lane() < n ? LANES : 0);
  TwoDofs sum = {{0, 0}};
#pragma unroll 4
  for (int q = 0; q < wide_stride(n); q += 4) {
    const Vec4 four = broadcast4(x + q);
    const real v[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const bool there = e == 0 || !in_padding(q + e, n);
      sum.at[0] = there ? fma_(near[e * n], v[e], sum.at[0]) : sum.at[0];
      sum.at[1] = there ? fma_(far[e * n], v[e], sum.at[1]) : sum.at[1];
    }
    near += 4 * n;
    far += 4 * n;
  }
  return sum;
}

// y + J' f
DEVICE TwoDofs wide_add_forces(const real* J, int nrow, const real* f, TwoDofs y, int n) {
  const int i = lane(), stride = wide_stride(n);
#pragma unroll 4
  for (int r = 0; r < nrow; ++r) {
    const real* row = J + r * stride;
    const real force = f[r];
    y.at[0] = fma_(row[i], force, y.at[0]);
    y.at[1] = fma_(LANES + i < stride ? row[LANES + i] : R(0.0), force, y.at[1]);
  }
  return y;
}

DEVICE void add_four(real* h, real c, const Vec4& v) {
  h[0] = fma_(c, v.x, h[0]);
  h[1] = fma_(c, v.y, h[1]);
  h[2] = fma_(c, v.z, h[2]);
  h[3] = fma_(c, v.w, h[3]);
}

// H += c v' for a vector v in memory, whose entries are zero where `near` and `far` have no bit. The lane has c_i and
// c_(LANES + i).
DEVICE void wide_add_product(WideRows* h, const TwoDofs& c, const real* v, unsigned near, unsigned far, int n) {
#pragma unroll
  for (int j = 0; j < LANES; j += 16) {
    if (near >> j & 0xffffu) {
      Vec4 four[4];
#pragma unroll
      for (int q = 0; q < 4; ++q) four[q] = broadcast4(v + j + 4 * q);
#pragma unroll
      for (int q = 0; q < 4; ++q) add_four(h->near + j + 4 * q, c.at[0], four[q]);
    }
  }
  if (!far) return;
#pragma unroll
  for (int j = 0; j < FAR_ROWS; j += 4) {
    if (beyond_far(j, n)) break;
    const Vec4 four = broadcast4(v + LANES + j);
    add_four(h->far + j, c.at[0], four);
    add_four(h->corner + j, c.at[1], four);
  }
}

// Add rows that name their dofs, which all differ.
DEVICE void wide_add_entries(WideRows* h, TwoDofs* y, real* column, const RowTerm& own) {
  const int i = lane();
  lane_sync();
#pragma unroll
  for (int k = 0; k < 4; ++k) column[k * LANES + i] = 0;
  lane_sync();
  if (own.dof >= 0) {
    column[own.dof] = own.weight;
    column[2 * LANES + own.dof] = own.force;
  }
  lane_sync();
#pragma unroll
  for (int p = 0; p < 2; ++p) {
    h->diagonal[p] += column[p * LANES + i];
    y->at[p] += column[(2 + p) * LANES + i];
  }
}

// H += J' W J and y += J' f. term(r) is what row r adds, and cone_entry(r, i) is column i of W J at a row of a cone.
// `column` is COLUMN_WORDS of shared memory.
//
// Each lane looks at one row, and then all lanes go through the rows together that add something. The next of these is
// loaded before the entries of the current one are changed. Rows with one entry change the diagonal alone.
template <typename Term, typename ConeEntry>
DEVICE void wide_add_rows(WideRows* h, TwoDofs* y, real* column, const real* J, int nrow, Term term,
                          ConeEntry cone_entry, int n) {
  const int i = lane(), stride = wide_stride(n);
  const auto row_at = [&](int r) { return two_load(J + r * stride, stride); };
  ROLLED for (int first = 0; first < nrow; first += LANES) {
    RowTerm own = {0, 0, false, -1};
    if (first + i < nrow) own = term(first + i);
    const unsigned cones = lane_ballot(own.cone), named = lane_ballot(own.dof >= 0);
    unsigned left = lane_ballot(own.force != 0 || own.weight != 0) & ~named;
    if (named) wide_add_entries(h, y, column, own);
    TwoDofs next = {{0, 0}};
    if (left) next = row_at(first + lowest_bit(left));
    while (left) {
      const int from = lowest_bit(left), r = first + from;
      const TwoDofs v = next;
      left &= left - 1;
      if (left) next = row_at(first + lowest_bit(left));
      const real force = lane_get(own.force, from), weight = lane_get(own.weight, from);
      TwoDofs c = {{weight * v.at[0], weight * v.at[1]}};
      if (cones >> from & 1u) {
        c.at[0] = cone_entry(r, i);
        c.at[1] = LANES + i < stride ? cone_entry(r, LANES + i) : R(0.0);
      }
#pragma unroll
      for (int p = 0; p < 2; ++p) y->at[p] = fma_(force, v.at[p], y->at[p]);
      const unsigned near = lane_ballot(v.at[0] != 0), far = lane_ballot(v.at[1] != 0);
      if (__popc(near) + __popc(far) > 1 || cones >> from & 1u) {
        wide_add_product(h, c, J + r * stride, near, far, n);
      } else {
#pragma unroll
        for (int p = 0; p < 2; ++p) h->diagonal[p] = fma_(c.at[p], v.at[p], h->diagonal[p]);
      }
    }
  }
}
#endif
