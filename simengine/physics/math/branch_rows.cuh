// Sparse symmetric matrices of a world with many dofs: row i has an entry for each dof on the branch from dof i to the
// root, as the joint-space inertia has. A constraint row that couples dofs of two branches makes one branch of them:
// then the Hessian, too, has entries along branches only. Eliminated from the leaves to the roots, such a matrix gets no
// others (R. Featherstone, "Rigid Body Dynamics Algorithms", section 6.5).
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

// Join the branches of all dofs where some of `number` constraint rows, of `stride` words, have an entry.
DEVICE void join_rows(const Model& m, const BranchRows& B, const real* rows, int number, int stride) {
  const auto moves_rows = [&](int i) {
    bool any = false;
    for (int k = 0; k < number; ++k) any |= rows[k * stride + i] != 0;
    return any;
  };
  int last = -1, apart = -1;
  LANE_FOR(i, B.n) {
    if (moves_rows(i)) last = i;
  }
  last = lane_most(last);
  if (last < 0) return;
  // most rows have entries on one branch of the tree
  const int body = m.dof_bodyid()[last];
  LANE_FOR(i, last) {
    const int upper = m.dof_bodyid()[i];
    if (!(upper <= body && body <= m.body_last()[upper]) && moves_rows(i)) apart = i;
  }
  apart = lane_most(apart);
  ROLLED while (apart >= 0) {
    LANE_FOR(i, B.n) B.c[i] = 0;
    lane_sync();
    if (lane() == 0) {
      ROLLED for (int i = last; i >= 0; i = B.parent[i]) B.c[i] = 1;
    }
    lane_sync();
    apart = -1;
    LANE_FOR(i, last) {
      if (B.c[i] == 0 && moves_rows(i)) apart = i;
    }
    apart = lane_most(apart);
    if (apart >= 0 && lane() == 0) join_branches(B.parent, last, apart);
    lane_sync();
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
  ROLLED for (int r = 0; r < nrow; ++r) {
    const int number = together(r);
    if (number) join_rows(m, B, J + size_t(r) * stride, number, stride);
  }
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
