// Solution of linear systems with entries along branches only (branch_rows.cuh). The entries that pivots are taken out
// of are in squares of four by four, of which a lane has one in registers.
#pragma once

#ifdef BRANCH_ROWS
DEVICE void four_words(const real* from, real* out) {
  const Vec4 four = *reinterpret_cast<const Vec4*>(from);
  out[0] = four.x, out[1] = four.y, out[2] = four.z, out[3] = four.w;
}

// COUNT rows that are eliminated together: those of dof k and of the dofs before it, each the parent of the one after.
// All have the first `above` entries in common. Further entries of theirs are `corner`: of row p, those of columns
// k - p, k - p - 1, ...; after the elimination, `multiplier` has what these rows are multiplied by.
template <int COUNT>
struct Pivots {
  real* row[COUNT];
  int above;
  real inverse[COUNT], x[COUNT], multiplier[COUNT][COUNT];

  DEVICE_METHOD void eliminate(const BranchRows& B, int k, const real* right) {
    real corner[COUNT][COUNT];
    above = B.depth(k) - (COUNT - 1);
    UNROLLED for (int p = 0; p < COUNT; ++p) {
      row[p] = B.entry + B.start[k - p];
      x[p] = right[k - p];
      UNROLLED for (int q = p; q < COUNT; ++q) corner[p][q] = row[p][above + COUNT - 1 - q];
    }
    UNROLLED for (int p = 0; p < COUNT; ++p) {
      inverse[p] = corner[p][p] <= 0 ? reciprocal_(REAL_MAX) : reciprocal_(corner[p][p]);
      UNROLLED for (int q = p + 1; q < COUNT; ++q) {
        multiplier[p][q] = corner[p][q] * inverse[p];
        UNROLLED for (int s = q; s < COUNT; ++s) corner[q][s] = fma_(-multiplier[p][q], corner[p][s], corner[q][s]);
        x[q] = fma_(-multiplier[p][q], x[p], x[q]);
      }
    }
  }

  // What is left of entry t of each row.
  DEVICE_METHOD void load(int t, real* v) const {
    UNROLLED for (int p = 0; p < COUNT; ++p) v[p] = row[p][t];
    UNROLLED for (int p = 0; p < COUNT; ++p) {
      UNROLLED for (int q = p + 1; q < COUNT; ++q) v[q] = fma_(-multiplier[p][q], v[p], v[q]);
    }
  }

  // Take the rows, whose common entries are what is left of them, out of a square of four rows above and four columns:
  // those of entries a to a + 3, and from entry t on. A square on the diagonal has some words behind the ends of rows.
  DEVICE_METHOD void take_out(const BranchRows& B, int k, int a, int t) const {
    const unsigned four = four_dofs(B.branch(k) + a);
    real l[COUNT][4], v[COUNT][4], entry[4][4];
    Vec4* to[4];
    UNROLLED for (int p = 0; p < COUNT; ++p) {
      four_words(row[p] + a, l[p]);
      four_words(row[p] + t, v[p]);
      UNROLLED for (int q = 0; q < 4; ++q) l[p][q] *= inverse[p];
    }
    UNROLLED for (int q = 0; q < 4; ++q) {
      to[q] = reinterpret_cast<Vec4*>(B.entry + B.start[a + q < above ? four >> 8 * q & 255u : k] + t);
      four_words(&to[q]->x, entry[q]);
    }
    UNROLLED for (int q = 0; q < 4; ++q) {
      UNROLLED for (int p = 0; p < COUNT; ++p) {
        UNROLLED for (int c = 0; c < 4; ++c) entry[q][c] = fma_(-l[p][q], v[p][c], entry[q][c]);
      }
      if (a + q < above) *to[q] = {entry[q][0], entry[q][1], entry[q][2], entry[q][3]};
    }
  }
};

// The row of square e of a lower triangle of squares, which are numbered row by row.
DEVICE int row_of_square(int e) { return int((sqrt_(real(8 * e + 1)) - 1) * R(0.5)); }

template <int COUNT>
DEVICE void eliminate_pivots(const BranchRows& B, int k, real* x) {
  Pivots<COUNT> pivots;
  pivots.eliminate(B, k, x);
  const int above = pivots.above;
  if (COUNT > 1) {
    LANE_FOR(t, above) {
      real v[COUNT];
      pivots.load(t, v);
      UNROLLED for (int p = 1; p < COUNT; ++p) pivots.row[p][t] = v[p];
    }
    lane_sync();
  }
  const int squares = (above + 3) / 4;
  LANE_FOR(e, squares * (squares + 1) / 2) {
    const int i = row_of_square(e);
    pivots.take_out(B, k, 4 * i, 4 * (e - i * (i + 1) / 2));
  }
  lane_sync();
  const unsigned char* dofs = B.branch(k);
  LANE_FOR(t, above) {
    real* to = x + dofs[t];
    real sum = *to;
    UNROLLED for (int p = 0; p < COUNT; ++p) {
      const real l = pivots.row[p][t] * pivots.inverse[p];
      pivots.row[p][t] = l;
      sum = fma_(-l, pivots.x[p], sum);
    }
    *to = sum;
  }
  if (lane() == 0) {
    UNROLLED for (int p = 0; p < COUNT; ++p) {
      pivots.row[p][above + COUNT - 1 - p] = pivots.inverse[p];
      if (p) x[k - p] = pivots.x[p];
      UNROLLED for (int q = p + 1; q < COUNT; ++q) pivots.row[p][above + COUNT - 1 - q] = pivots.multiplier[p][q];
    }
  }
  lane_sync();
}

// A = L' D L: the rows become those of L, and the entries on the diagonal those of inv(D). x becomes inv(L') x. A pivot
// that rounding has left not positive takes its dof out of the solution. Up to four dofs of a chain are eliminated
// together: rows above are read and written once for all of them, with the operations that they see one by one.
DEVICE void factor_branches(const BranchRows& B, real* x) {
  ROLLED for (int k = B.n - 1; k >= 0;) {
    const bool one = B.is_chained(k);
    if (one && k > 2 && B.is_chained(k - 1) && B.is_chained(k - 2)) {
      eliminate_pivots<4>(B, k, x);
      k -= 4;
    } else if (one) {
      eliminate_pivots<2>(B, k, x);
      k -= 2;
    } else {
      eliminate_pivots<1>(B, k, x);
      --k;
    }
  }
}

// x becomes inv(L') x, as in factor_branches.
DEVICE void solve_from_leaves(const BranchRows& B, real* x) {
  ROLLED for (int k = B.n - 1; k >= 0; --k) {
    const int at = B.start[k];
    const unsigned char* dofs = B.branch(k);
    const real x_k = x[k];
    LANE_FOR(t, B.depth(k)) {
      real* entry = x + dofs[t];
      *entry = fma_(-B.entry[at + t], x_k, *entry);
    }
    lane_sync();
  }
}

// x becomes inv(L) inv(D) x, and so the solution after factor_branches: four dofs at a time.
DEVICE void solve_to_leaves(const BranchRows& B, real* x) {
  LANE_FOR(k, B.n) x[k] *= B.entry[B.start[k] + B.depth(k)];
  lane_sync();
  ROLLED for (int k = 0; k < B.n; k += 4) {
    const FourRows rows = four_rows(B, k);
    real sum[4] = {0, 0, 0, 0}, own[4], l[4][4];
    bool among[4][4];  // whether dof k + p is above dof k + q, whose entry for it is l
    UNROLLED for (int q = 0; q < 4; ++q) {
      UNROLLED for (int p = 0; p < q; ++p) {
        const int t = rows.entries[p] - 1;
        among[q][p] = t < rows.entries[q] - 1 && rows.dofs[q][t] == k + p;
        l[q][p] = among[q][p] ? B.entry[rows.at[q] + t] : R(0.0);
      }
    }
    ROLLED for (int t = lane(); t < rows.longest; t += LANES) {
      UNROLLED for (int q = 0; q < 4; ++q) {
        const int dof = t < rows.entries[q] ? rows.dofs[q][t] : k;
        if (dof < k) sum[q] = fma_(B.entry[rows.at[q] + t], x[dof], sum[q]);
      }
    }
    lane_sums<4>(sum);
    // the four among each other, by every lane
    UNROLLED for (int q = 0; q < 4; ++q) {
      own[q] = k + q < B.n ? x[k + q] - sum[q] : R(0.0);
      UNROLLED for (int p = 0; p < q; ++p) {
        if (among[q][p]) own[q] = fma_(-l[q][p], own[p], own[q]);
      }
    }
    lane_sync();
    UNROLLED for (int q = 0; q < 4; ++q) {
      if (k + q < B.n && lane() == q % LANES) x[k + q] = own[q];
    }
    lane_sync();
  }
}

// x = (A + scale diag(d) + J' W J)^-1 g with g = b + J' f, for a dense A in memory whose branches, joined by the rows,
// are those of B. term(r) is what row r of J adds, and cone_entry(r, i) is column i of W J at a row of a cone. If
// `gradient` is not null, it receives g, and where the squared norm of g is below `floor`, x is g. Returns the squared
// norm.
template <typename Term, typename ConeEntry>
DEVICE real solve_along_branches(const BranchRows& B, real* x, const real* A, const real* d, real scale, int nrow,
                                 const real* J, int stride, Term term, ConeEntry cone_entry, const real* b,
                                 real* gradient, real floor) {
  load_branches(B, A, d, scale);
  LANE_FOR(i, B.n) x[i] = b[i];
  lane_sync();
  add_row_terms(B, nrow, J, stride, term, cone_entry, x);
  real norm = 0;
  lane_sync();
  LANE_FOR(i, B.n) {
    if (gradient) gradient[i] = x[i];
    norm = fma_(x[i], x[i], norm);
  }
  norm = lane_sum(norm);
  if (gradient && norm < floor) return norm;
  factor_branches(B, x);
  solve_to_leaves(B, x);
  return norm;
}
#endif
