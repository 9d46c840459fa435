// Matrices along branches (branch_rows.cuh): they are loaded from a dense matrix, multiplied, and rows of J are added
// to them. Lane t % LANES works on the column that is entry t of a row.
#pragma once

#ifdef BRANCH_ROWS
// Four consecutive rows, or the last of them: where they start, how many entries they have, and of which dofs.
struct FourRows {
  int at[4], entries[4], longest;
  const unsigned char* dofs[4];
};

DEVICE FourRows four_rows(const BranchRows& B, int k) {
  FourRows rows;
  rows.longest = 0;
  UNROLLED for (int q = 0; q < 4; ++q) {
    rows.at[q] = k + q < B.n ? B.start[k + q] : 0;
    rows.entries[q] = k + q < B.n ? B.depth(k + q) + 1 : 0;
    rows.dofs[q] = B.branch(k + q < B.n ? k + q : k);
    rows.longest = rows.entries[q] > rows.longest ? rows.entries[q] : rows.longest;
  }
  return rows;
}

// The entries become those of the dense matrix A, plus scale d on the diagonal. Loads of eight rows overlap.
DEVICE void load_branches(const BranchRows& B, const real* A, const real* d, real scale) {
  ROLLED for (int k = 0; k < B.n; k += 8) {
    const FourRows rows[2] = {four_rows(B, k), four_rows(B, k + 4)};
    const int longest = rows[0].longest > rows[1].longest ? rows[0].longest : rows[1].longest;
    ROLLED for (int t = lane(); t < longest; t += LANES) {
      real x[8];
      UNROLLED for (int q = 0; q < 8; ++q) {
        const int entries = rows[q / 4].entries[q % 4];
        x[q] = t < entries ? A[(k + q) * B.n + rows[q / 4].dofs[q % 4][t]] : R(0.0);
      }
      UNROLLED for (int q = 0; q < 8; ++q) {
        const int at = rows[q / 4].at[q % 4], entries = rows[q / 4].entries[q % 4];
        if (scale != 0 && t == entries - 1) x[q] += scale * d[k + q];
        if (t < entries) B.entry[at + t] = x[q];
      }
    }
  }
  lane_sync();
}

// out = A x for a dense matrix A without entries beside the branches. Loads of eight rows overlap.
DEVICE void branches_mul(const BranchRows& B, const real* A, const real* x, real* out) {
  LANE_FOR(i, B.n) out[i] = 0;
  lane_sync();
  ROLLED for (int k = 0; k < B.n; k += 8) {
    const FourRows rows[2] = {four_rows(B, k), four_rows(B, k + 4)};
    const int longest = rows[0].longest > rows[1].longest ? rows[0].longest : rows[1].longest;
    real sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    ROLLED for (int t = lane(); t < longest; t += LANES) {
      real a[8];
      int dof[8];
      UNROLLED for (int q = 0; q < 8; ++q) {
        dof[q] = t < rows[q / 4].entries[q % 4] ? rows[q / 4].dofs[q % 4][t] : -1;
        a[q] = dof[q] >= 0 ? A[(k + q) * B.n + dof[q]] : R(0.0);
      }
      // rows of a chain have the same dof at t, whose sum stays in a register
      int at = -1;
      real above = 0;
      UNROLLED for (int q = 0; q < 8; ++q) {
        if (dof[q] < 0) continue;
        sum[q] = fma_(a[q], x[dof[q]], sum[q]);
        if (dof[q] == k + q) continue;
        if (dof[q] != at) {
          if (at >= 0) out[at] = above;
          at = dof[q];
          above = out[at];
        }
        above = fma_(a[q], x[k + q], above);
      }
      if (at >= 0) out[at] = above;
    }
    lane_sums<8>(sum);
    UNROLLED for (int q = 0; q < 8; ++q) {
      if (k + q < B.n && lane() == q % LANES) B.c[k + q] = sum[q];
    }
  }
  lane_sync();
  LANE_FOR(i, B.n) out[i] += B.c[i];
  lane_sync();
}

// Four dofs of a branch by one load, from a multiple of four on; those beyond its end have any number.
DEVICE unsigned four_dofs(const unsigned char* dofs) { return *reinterpret_cast<const unsigned*>(dofs); }

// The dofs where a row of J has an entry, which are on one branch: of entry j, where the row of its dof starts (low 16
// bits) and the dof. They take the place of the parents, which are used until branches are listed.
struct alignas(16) FourWords {
  unsigned at[4];
};

DEVICE unsigned* packed_dofs(const BranchRows& B) { return reinterpret_cast<unsigned*>(B.parent); }

// Add c v' for `number` entries of a row that are packed, ascending.
DEVICE void add_product(const BranchRows& B, int number) {
  const unsigned* packed = packed_dofs(B);
  ROLLED for (int first = 0; first < number; first += LANES) {
    const int j = first + lane();
    const real v = j < number ? B.v[j] : R(0.0);
    const int t = j < number ? B.depth(packed[j] >> 16) : 0;
    ROLLED for (int a = first & ~3; a < number; a += 4) {
      const FourWords dofs = *reinterpret_cast<const FourWords*>(packed + a);
      const Vec4 four = *reinterpret_cast<const Vec4*>(B.c + a);
      const real c[4] = {four.x, four.y, four.z, four.w};
      real entry[4];
      int to[4];
      UNROLLED for (int q = 0; q < 4; ++q) {
        to[q] = a + q < number && j <= a + q ? int(dofs.at[q] & 0xffffu) + t : -1;
        entry[q] = to[q] >= 0 ? B.entry[to[q]] : R(0.0);
      }
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

// Add a row with entries for few dofs, whose values are `low` and `high`, to the matrix and to the right side y: a lane
// for each number that changes, by the operations of add_row.
DEVICE void add_few(const BranchRows& B, const RowTerm& own, real low, real high, real* y) {
  lane_sync();
  LANE_FOR(part, 5) {  // y for both dofs; and the entries of the second, both, and the first
    const bool right = part < 2, of_high = part == 1 || part == 2 || part == 3, at_high = part == 1 || part == 2;
    const real c = own.weight * (of_high ? high : low), v = of_high ? high : low, other = at_high ? high : low;
    const int dof = of_high ? own.few.high : own.few.low, column = at_high ? own.few.high : own.few.low;
    const bool there = dof >= 0 && (v != 0 || c != 0) && (right || (own.weight != 0 && other != 0));
    if (!there) continue;
    real* to = right ? y + dof : B.entry + B.start[dof] + B.depth(column);
    *to = right ? fma_(own.force, v, *to) : fma_(c, other, *to);
  }
}

// Add row r of J to the matrix and to the right side y; `own` is what it adds, `four` are its first entries, and
// cone_entry(r, i) is column i of W J.
template <typename ConeEntry>
DEVICE void add_row(const BranchRows& B, const real* row, int r, const RowTerm& own, FourEntries four,
                    ConeEntry cone_entry, real* y) {
  lane_sync();  // the vectors of the row before are read, and what it added is there
  unsigned* packed = packed_dofs(B);
  int number = 0;
  ROLLED for (int first = 0; first < B.n; first += 4 * LANES) {
    if (first) four = four_entries(B, row, first);
    UNROLLED for (int q = 0; q < 4; ++q) {
      const int i = first + q * LANES + lane();
      const real v = four.at[q];
      const real c = i >= B.n ? R(0.0) : own.cone ? cone_entry(r, i) : own.weight * v;
      const bool there = c != 0 || v != 0;
      int total;
      const int place = number + lane_rank(there, &total);
      if (there) {
        B.c[place] = c;
        B.v[place] = v;
        packed[place] = unsigned(B.start[i]) | unsigned(i) << 16;
      }
      number += total;
    }
  }
  lane_sync();
  LANE_FOR(j, number) {
    real* to = y + (packed[j] >> 16);
    *to = fma_(own.force, B.v[j], *to);
  }
  if (own.weight != 0) add_product(B, number);
}

// The entries of a row for few dofs, or zeros.
DEVICE void few_entries(const real* row, const FewDofs& few, real* low, real* high) {
  *low = few.low >= 0 ? row[few.low] : R(0.0);
  *high = few.high >= 0 ? row[few.high] : R(0.0);
}

// Add the rows of J that add something. Each lane looks at one row and loads its entries if they are few. The first
// entries of another row are loaded while rows before it are added.
template <typename Term, typename ConeEntry>
DEVICE void add_row_terms(const BranchRows& B, int nrow, const real* J, int stride, Term term, ConeEntry cone_entry,
                     real* y) {
#if SIMENGINE_GPU
  ROLLED for (int first = 0; first < nrow; first += LANES) {
    const int i = first + lane();
    RowTerm own = {0, 0, false, -1};
    real low = 0, high = 0;
    if (i < nrow) {
      own = term(i);
      few_entries(J + size_t(i) * stride, own.few, &low, &high);
    }
    const int dofs = own.few.low < 0 ? -1 : own.few.low | (own.few.high + 1) << 16;
    unsigned left = lane_ballot(own.force != 0 || own.weight != 0), many = left & lane_ballot(dofs < 0);
    const unsigned cones = lane_ballot(own.cone);
    FourEntries next = {{0, 0, 0, 0}};
    if (many) next = four_entries(B, J + size_t(first + lowest_bit(many)) * stride, 0);
    ROLLED for (; left; left &= left - 1) {
      const int from = lowest_bit(left), r = first + from, few = lane_get_int(dofs, from);
      const RowTerm given = {lane_get(own.force, from), lane_get(own.weight, from), bool(cones >> from & 1u), -1,
                             {few & 0xffff, (few >> 16) - 1}};
      if (few >= 0) {
        add_few(B, given, lane_get(low, from), lane_get(high, from), y);
        continue;
      }
      const FourEntries four = next;
      many &= many - 1;
      if (many) next = four_entries(B, J + size_t(first + lowest_bit(many)) * stride, 0);
      add_row(B, J + size_t(r) * stride, r, given, four, cone_entry, y);
    }
  }
#else
  for (int r = 0; r < nrow; ++r) {
    const real* row = J + size_t(r) * stride;
    const RowTerm own = term(r);
    if (own.force == 0 && own.weight == 0) continue;
    real low, high;
    few_entries(row, own.few, &low, &high);
    if (own.few.low >= 0) add_few(B, own, low, high, y);
    else add_row(B, row, r, own, four_entries(B, row, 0), cone_entry, y);
  }
#endif
}
#endif
