// Sparse symmetric matrices of a world with many dofs: row i has an entry for each dof on the branch from dof i to the
// root, as the joint-space inertia has. A constraint row that couples dofs of two branches makes one branch of them:
// then the Hessian, too, has entries along branches only. Eliminated from the leaves to the roots, such a matrix gets
// no others (R. Featherstone, "Rigid Body Dynamics Algorithms", section 6.5).
//
// The dofs on a branch are numbered from its root, so entry t of a row belongs to column dofs[t]. Each of these dofs
// has the beginning of the branch as its own: the row of dof dofs[a] has the columns dofs[0] to dofs[a].
#pragma once

#ifdef BRANCH_ROWS
// The arrays of a matrix of n rows in shared memory. Row i has the words from start[i] to start[i] + depth[i] of
// `entry`, and as many of `dofs`; each starts at a multiple of four.
struct BranchRows {
  int n;
  real* entry;
  int *parent, *depth, *start;
  real *c, *v;          // a vector and its product with a weight, one entry for each dof
  unsigned char* dofs;  // so n is at most 256
};

// Words that the entries of n rows may take, where one branch has all dofs; see branch_words in kernel.py.
DEVICE int most_entries(int n) {
  const int padded = (n + 3) & ~3;
  return padded * (padded + 4) / 2;
}

// Place the arrays in memory, with `words` for the entries.
DEVICE BranchRows place_branches(real* memory, int n, int words) {
  const int padded = (n + 3) & ~3;
  real* next = memory + words;
  BranchRows B;
  B.n = n, B.entry = memory;
  B.parent = reinterpret_cast<int*>(next), B.depth = reinterpret_cast<int*>(next + padded);
  B.start = reinterpret_cast<int*>(next + 2 * padded);
  B.c = next + 3 * padded, B.v = next + 4 * padded;
  B.dofs = reinterpret_cast<unsigned char*>(next + 5 * padded);
  return B;
}

// Make one branch of the branches of dofs a and b, a > b. Of two dofs on one branch, the higher is nearer to its end.
DEVICE void join_branches(int* parent, int a, int b) {
  while (a != b && b >= 0) {
    const int next = parent[a];
    if (next < b) {
      parent[a] = b;
      a = b;
      b = next;
    } else {
      a = next;
    }
  }
}

// Join the branches of all dofs where some of `number` constraint rows, of `stride` words, have an entry; `last` is the
// last of these dofs.
DEVICE void join_dofs(const BranchRows& B, const real* rows, int number, int stride, int last) {
  ROLLED for (int apart = 0; apart >= 0;) {
    LANE_FOR(i, B.n) B.c[i] = 0;
    lane_sync();
    if (lane() == 0) {
      ROLLED for (int i = last; i >= 0; i = B.parent[i]) B.c[i] = 1;
    }
    lane_sync();
    apart = -1;
    LANE_FOR(i, last) {
      bool there = false;
      for (int k = 0; k < number; ++k) there |= rows[k * stride + i] != 0;
      if (there && B.c[i] == 0) apart = i;
    }
    apart = lane_most(apart);
    if (apart >= 0 && lane() == 0) join_branches(B.parent, last, apart);
    lane_sync();
  }
}

// Join branches that constraint rows couple, for rows r to r + 3 of nrow. Most have entries on one branch of the tree.
template <typename Together>
DEVICE void join_rows(const Model& m, const BranchRows& B, const real* J, int r, int nrow, int stride,
                      Together together) {
  const real* row[4];
  int last[4], apart[4];
  UNROLLED for (int q = 0; q < 4; ++q) {
    row[q] = J + size_t(r + q < nrow ? r + q : r) * stride;
    last[q] = apart[q] = -1;
  }
  LANE_FOR_LOADS(i, B.n) {
    UNROLLED for (int q = 0; q < 4; ++q) last[q] = row[q][i] != 0 ? i : last[q];
  }
  UNROLLED for (int q = 0; q < 4; ++q) last[q] = lane_most(last[q]);
  LANE_FOR(i, B.n) {
    const int upper = m.dof_bodyid()[i], end = m.body_last()[upper];
    UNROLLED for (int q = 0; q < 4; ++q) {
      const int body = last[q] >= 0 ? m.dof_bodyid()[last[q]] : 0;
      const bool above = i <= last[q] && upper <= body && body <= end;
      if (row[q][i] != 0 && !above) apart[q] = i;
    }
  }
  UNROLLED for (int q = 0; q < 4; ++q) apart[q] = lane_any(apart[q] >= 0) ? 0 : -1;
  ROLLED for (int q = 0; q < 4 && r + q < nrow; ++q) {
    const int number = together(r + q);
    int end = q == 0 ? last[0] : q == 1 ? last[1] : q == 2 ? last[2] : last[3];
    const int beside = q == 0 ? apart[0] : q == 1 ? apart[1] : q == 2 ? apart[2] : apart[3];
    const real* rows = J + size_t(r + q) * stride;
    if (number > 1) {
      LANE_FOR(i, B.n) {
        for (int k = 0; k < number; ++k) end = rows[k * stride + i] != 0 && i > end ? i : end;
      }
      end = lane_most(end);
    }
    if (end >= 0 && (number > 1 || (number && beside >= 0))) join_dofs(B, rows, number, stride, end);
  }
}

// List the dofs on each branch.
DEVICE void list_branches(const BranchRows& B) {
  int next = 0;
  ROLLED for (int k = 0; k < B.n; ++k) {
    const int parent = B.parent[k], depth = parent < 0 ? 0 : B.depth[parent] + 1;
    const unsigned char* of_parent = B.dofs + (parent < 0 ? 0 : B.start[parent]);
    LANE_FOR(t, depth) B.dofs[next + t] = of_parent[t];
    if (lane() == 0) {
      B.dofs[next + depth] = (unsigned char)k;
      B.depth[k] = depth;
      B.start[k] = next;
    }
    lane_sync();
    next += (depth + 4) & ~3;
  }
}

// The branches of the trees, joined where constraint rows couple some of them. together(r) is the number of rows from
// row r on that couple all of their dofs; 0 for a row that an earlier one includes.
template <typename Together>
DEVICE BranchRows branches_of(const Model& m, int nrow, const real* J, int stride, Together together, real* memory) {
  const BranchRows B = place_branches(memory, m.nv(), most_entries(m.nv()));
  LANE_FOR(i, B.n) B.parent[i] = m.dof_parentid()[i];
  lane_sync();
  ROLLED for (int r = 0; r < nrow; r += 4) join_rows(m, B, J, r, nrow, stride, together);
  list_branches(B);
  return B;
}

// The branches of the trees.
DEVICE BranchRows branches_of_trees(const Model& m, real* memory) {
  const BranchRows B = place_branches(memory, m.nv(), m.nbranch());
  LANE_FOR(i, B.n) B.parent[i] = m.dof_parentid()[i];
  lane_sync();
  list_branches(B);
  return B;
}
#endif
