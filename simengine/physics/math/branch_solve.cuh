// Solution of linear systems with entries along branches only (branch_rows.cuh). Lane t % LANES works on the column
// that is entry t of a row, in all rows: so lanes wait for each other only where they read what another has written.
#pragma once

#ifdef BRANCH_ROWS
// Four consecutive rows, or the last of them: where they start, and how many entries they have.
struct FourRows {
  int at[4], entries[4], longest;
};

DEVICE FourRows four_rows(const BranchRows& B, int k) {
  FourRows rows;
  rows.longest = 0;
  UNROLLED for (int q = 0; q < 4; ++q) {
    rows.at[q] = k + q < B.n ? B.start[k + q] : 0;
    rows.entries[q] = k + q < B.n ? B.depth[k + q] + 1 : 0;
    rows.longest = rows.entries[q] > rows.longest ? rows.entries[q] : rows.longest;
  }
  return rows;
}

// The entries become those of the dense matrix A, plus scale d on the diagonal.
DEVICE void load_branches(const BranchRows& B, const real* A, const real* d, real scale) {
  ROLLED for (int k = 0; k < B.n; k += 4) {
    const FourRows rows = four_rows(B, k);
    ROLLED for (int t = lane(); t < rows.longest; t += LANES) {
      real x[4];
      UNROLLED for (int q = 0; q < 4; ++q) {
        x[q] = t < rows.entries[q] ? A[(k + q) * B.n + B.dofs[rows.at[q] + t]] : R(0.0);
      }
      UNROLLED for (int q = 0; q < 4; ++q) {
        if (scale != 0 && t == rows.entries[q] - 1) x[q] += scale * d[k + q];
        if (t < rows.entries[q]) B.entry[rows.at[q] + t] = x[q];
      }
    }
  }
  lane_sync();
}

// out = A x for a dense matrix A without entries beside the branches.
DEVICE void branches_mul(const BranchRows& B, const real* A, const real* x, real* out) {
  LANE_FOR(i, B.n) out[i] = 0;
  lane_sync();
  ROLLED for (int k = 0; k < B.n; k += 4) {
    const FourRows rows = four_rows(B, k);
    real sum[4] = {0, 0, 0, 0};
    ROLLED for (int t = lane(); t < rows.longest; t += LANES) {
      real a[4];
      int dof[4];
      UNROLLED for (int q = 0; q < 4; ++q) {
        dof[q] = t < rows.entries[q] ? B.dofs[rows.at[q] + t] : -1;
        a[q] = dof[q] >= 0 ? A[(k + q) * B.n + dof[q]] : R(0.0);
      }
      UNROLLED for (int q = 0; q < 4; ++q) {
        if (dof[q] < 0) continue;
        sum[q] = fma_(a[q], x[dof[q]], sum[q]);
        if (dof[q] < k + q) out[dof[q]] = fma_(a[q], x[k + q], out[dof[q]]);
      }
    }
    lane_sums<4>(sum);
    UNROLLED for (int q = 0; q < 4; ++q) {
      if (k + q < B.n && lane() == q % LANES) B.c[k + q] = sum[q];
    }
  }
  lane_sync();
  LANE_FOR(i, B.n) out[i] += B.c[i];
  lane_sync();
}

// Four dofs of a branch by one load, from a multiple of four on; those beyond its end have any number.
DEVICE unsigned four_dofs(const BranchRows& B, int at) { return *reinterpret_cast<const unsigned*>(B.dofs + at); }

// Add c v' along the branch of dof `last`, for the vectors of B.
DEVICE void add_product(const BranchRows& B, int last) {
  const int at = B.start[last], entries = B.depth[last] + 1;
  ROLLED for (int first = 0; first < entries; first += LANES) {
    const int t = first + lane();
    const real v = t < entries ? B.v[B.dofs[at + t]] : R(0.0);
    ROLLED for (int a = first & ~3; a < entries; a += 4) {
      const unsigned four = four_dofs(B, at + a);
      real c[4], entry[4];
      int to[4];
      UNROLLED for (int q = 0; q < 4; ++q) {
        const int dof = four >> 8 * q & 255u;
        c[q] = a + q < entries ? B.c[dof] : R(0.0);
        to[q] = c[q] != 0 && t <= a + q ? B.start[dof] + t : -1;
      }
      UNROLLED for (int q = 0; q < 4; ++q) entry[q] = to[q] >= 0 ? B.entry[to[q]] : R(0.0);
      UNROLLED for (int q = 0; q < 4; ++q) {
        if (to[q] >= 0) B.entry[to[q]] = fma_(c[q], v, entry[q]);
      }
    }
  }
}

// Four entries of a row of J for each lane, from column `first` on; the next of them LANES columns further.
struct FourEntries {
  real at[4];
};

DEVICE FourEntries four_entries(const BranchRows& B, const real* row, int first) {
  FourEntries four;
  UNROLLED for (int q = 0; q < 4; ++q) {
    const int i = first + q * LANES + lane();
    four.at[q] = i < B.n ? row[i] : R(0.0);
  }
  return four;
}

// Add row r of J to the matrix and to the right side y; `own` is what it adds, `four` are its first entries, and
// cone_entry(r, i) is column i of W J.
template <typename ConeEntry>
DEVICE void add_row(const BranchRows& B, const real* row, int r, const RowTerm& own, FourEntries four,
                    ConeEntry cone_entry, real* y) {
  if (own.dof >= 0) {
    const int t = B.depth[own.dof];
    if (lane() == own.dof % LANES) y[own.dof] += own.force;
    if (lane() == t % LANES) B.entry[B.start[own.dof] + t] += own.weight;
    return;
  }
  int last = -1, number = 0;
  lane_sync();  // the vectors of the row before are read
  ROLLED for (int first = 0; first < B.n; first += 4 * LANES) {
    if (first) four = four_entries(B, row, first);
    UNROLLED for (int q = 0; q < 4; ++q) {
      const int i = first + q * LANES + lane();
      const real v = four.at[q];
      const real c = i >= B.n ? R(0.0) : own.cone ? cone_entry(r, i) : own.weight * v;
      if (i < B.n) {
        y[i] = fma_(own.force, v, y[i]);
        B.v[i] = v;
        B.c[i] = c;
      }
      int there;
      lane_rank(c != 0 || v != 0, &there);
      number += there;
      if (c != 0 || v != 0) last = i;
    }
  }
  last = lane_most(last);
  lane_sync();
  if (last < 0 || own.weight == 0) return;
  if (number > 1) {
    add_product(B, last);
  } else if (lane() == B.depth[last] % LANES) {
    real* entry = B.entry + B.start[last] + B.depth[last];
    *entry = fma_(B.c[last], B.v[last], *entry);
  }
}

// A = L' D L: the rows become those of L, and the entries on the diagonal those of inv(D). x becomes inv(L') x. A pivot
// that rounding has left not positive takes its dof out of the solution.
DEVICE void factor_branches(const BranchRows& B, real* x) {
  const real none = reciprocal_(REAL_MAX);
  ROLLED for (int k = B.n - 1; k >= 0; --k) {
    const int at = B.start[k], above = B.depth[k];
    real* row = B.entry + at;
    const real pivot = row[above], inverse = pivot > 0 ? reciprocal_(pivot) : none, x_k = x[k];
    ROLLED for (int first = 0; first < above; first += LANES) {
      const int t = first + lane();
      const real v = t < above ? row[t] : R(0.0);
      ROLLED for (int a = first & ~3; a < above; a += 4) {
        const Vec4 under = *reinterpret_cast<const Vec4*>(row + a);
        const real l[4] = {under.x * inverse, under.y * inverse, under.z * inverse, under.w * inverse};
        const unsigned four = four_dofs(B, at + a);
        real entry[4];
        int to[4];
        UNROLLED for (int q = 0; q < 4; ++q) {
          to[q] = a + q < above && t <= a + q ? B.start[four >> 8 * q & 255u] + t : -1;
          entry[q] = to[q] >= 0 ? B.entry[to[q]] : R(0.0);
        }
        UNROLLED for (int q = 0; q < 4; ++q) {
          if (to[q] >= 0) B.entry[to[q]] = fma_(-l[q], v, entry[q]);
        }
      }
    }
    lane_sync();
    LANE_FOR(t, above) {
      const real l = row[t] * inverse;
      row[t] = l;
      x[B.dofs[at + t]] = fma_(-l, x_k, x[B.dofs[at + t]]);
    }
    if (lane() == 0) row[above] = inverse;
    lane_sync();
  }
}

// x becomes inv(L') x, as in factor_branches.
DEVICE void solve_from_leaves(const BranchRows& B, real* x) {
  ROLLED for (int k = B.n - 1; k >= 0; --k) {
    const int at = B.start[k];
    const real x_k = x[k];
    LANE_FOR(t, B.depth[k]) {
      real* entry = x + B.dofs[at + t];
      *entry = fma_(-B.entry[at + t], x_k, *entry);
    }
    lane_sync();
  }
}

// x becomes inv(L) inv(D) x, and so the solution after factor_branches: four dofs at a time.
DEVICE void solve_to_leaves(const BranchRows& B, real* x) {
  LANE_FOR(k, B.n) x[k] *= B.entry[B.start[k] + B.depth[k]];
  lane_sync();
  ROLLED for (int k = 0; k < B.n; k += 4) {
    const FourRows rows = four_rows(B, k);
    real sum[4] = {0, 0, 0, 0}, own[4];
    ROLLED for (int t = lane(); t < rows.longest; t += LANES) {
      UNROLLED for (int q = 0; q < 4; ++q) {
        const int dof = t < rows.entries[q] ? B.dofs[rows.at[q] + t] : k;
        if (dof < k) sum[q] = fma_(B.entry[rows.at[q] + t], x[dof], sum[q]);
      }
    }
    lane_sums<4>(sum);
    // the four among each other, by every lane
    UNROLLED for (int q = 0; q < 4; ++q) {
      own[q] = k + q < B.n ? x[k + q] - sum[q] : R(0.0);
      UNROLLED for (int p = 0; p < q; ++p) {
        const int t = rows.entries[p] - 1;
        const bool on_branch = t < rows.entries[q] - 1 && B.dofs[rows.at[q] + t] == k + p;
        if (on_branch) own[q] = fma_(-B.entry[rows.at[q] + t], own[p], own[q]);
      }
    }
    lane_sync();
    UNROLLED for (int q = 0; q < 4; ++q) {
      if (k + q < B.n && lane() == q % LANES) x[k + q] = own[q];
    }
    lane_sync();
  }
}

// Add the rows of J that add something. The first entries of a row are loaded while the row before is added.
template <typename Term, typename ConeEntry>
DEVICE void add_row_terms(const BranchRows& B, int nrow, const real* J, int stride, Term term, ConeEntry cone_entry,
                     real* y) {
  const auto adds = [&](int r) {
    const RowTerm own = term(r);
    return own.force != 0 || own.weight != 0;
  };
#if SIMENGINE_GPU
  ROLLED for (int first = 0; first < nrow; first += LANES) {
    unsigned left = lane_ballot(first + lane() < nrow && adds(first + lane()));
    FourEntries next = {{0, 0, 0, 0}};
    if (left) next = four_entries(B, J + size_t(first + lowest_bit(left)) * stride, 0);
    ROLLED while (left) {
      const int r = first + lowest_bit(left);
      const FourEntries four = next;
      left &= left - 1;
      if (left) next = four_entries(B, J + size_t(first + lowest_bit(left)) * stride, 0);
      add_row(B, J + size_t(r) * stride, r, term(r), four, cone_entry, y);
    }
  }
#else
  for (int r = 0; r < nrow; ++r) {
    const real* row = J + size_t(r) * stride;
    if (adds(r)) add_row(B, row, r, term(r), four_entries(B, row, 0), cone_entry, y);
  }
#endif
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
