// Sparse symmetric matrices of a world with many dofs: row i has an entry for each dof on the branch from dof i to the
// root, as the joint-space inertia has. A constraint row that couples dofs of two branches makes one branch of them:
// then the Hessian, too, has entries along branches only. Eliminated from the leaves to the roots, such a matrix gets
// no others (R. Featherstone, "Rigid Body Dynamics Algorithms", section 6.5).
//
// The dofs on a branch are numbered from its root, so entry t of a row belongs to column dofs[t]. Each of these dofs
// has the beginning of the branch as its own: the row of dof dofs[a] has the columns dofs[0] to dofs[a]. So only the
// branches that end in a leaf are listed, and any other dof has the list of a leaf beyond it.
#pragma once

#ifdef BRANCH_ROWS
// The arrays of a matrix of n rows in shared memory. Row i has the words from start[i] to start[i] + depth(i) of
// `entry`, and as many bytes from branch(i) on; each starts at a multiple of four.
struct BranchRows {
  int n;
  real* entry;
  int *parent, *start;
  int* place;           // depths in the low 15 bits, is_chained, and where in `dofs` the branches are listed
  real *c, *v;          // entries of a row and their products with a weight, or other numbers for each dof
  unsigned char* dofs;  // so n is at most 256

  DEVICE_METHOD int depth(int i) const { return place[i] & 0x7fff; }
  DEVICE_METHOD bool is_chained(int i) const { return place[i] & 0x8000; }  // is its parent the dof before it?
  DEVICE_METHOD unsigned char* branch(int i) const { return dofs + (unsigned(place[i]) >> 16); }
};

// Place the arrays in memory, with `words` for the entries; see branch_words in kernel.py.
DEVICE BranchRows place_branches(real* memory, int n, int words) {
  const int padded = (n + 3) & ~3;
  real* next = memory + words;
  BranchRows B;
  B.n = n, B.entry = memory;
  B.parent = reinterpret_cast<int*>(next), B.place = reinterpret_cast<int*>(next + padded);
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

// The dofs where rows of the Jacobian have an entry, by the bits of eight words.
struct Support {
  unsigned word[8];
};

DEVICE int top_bit(unsigned x) {
#if SIMENGINE_GPU
  return highest_bit(x);
#else
  return 31 - __builtin_clz(x);
#endif
}

// The bits of 32 entries from `first` on that are not zero, given those of the lane: entries lane(), lane() + LANES...
// An entry that is not a number has none: it may stand where no row has one, in a world that is not finite.
DEVICE unsigned entry_bits(const real* own) {
#if SIMENGINE_GPU && LANES == 32
  return lane_ballot(abs_(own[0]) > 0);
#else
  int bits = 0;
  for (int k = 0; k < 32 / LANES; ++k) bits |= int(unsigned(abs_(own[k]) > 0) << (lane() + k * LANES));
  return unsigned(lane_or(bits));
#endif
}

// The supports of `number` rows of J, at most four. Their loads overlap.
DEVICE void find_supports(int n, const real* J, const int* rows, int number, int stride, Support* of) {
  UNROLLED for (int w = 0; w < 8; w += 4) {
    real own[4][4][32 / LANES];
    UNROLLED for (int q = 0; q < 4; ++q) {
      const real* row = J + size_t(rows[q < number ? q : 0]) * stride;
      UNROLLED for (int e = 0; e < 4; ++e) {
        UNROLLED for (int k = 0; k < 32 / LANES; ++k) {
          const int i = 32 * (w + e) + lane() + k * LANES;
          own[q][e][k] = i < n ? row[i] : R(0.0);
        }
      }
    }
    UNROLLED for (int q = 0; q < 4; ++q) {
      UNROLLED for (int e = 0; e < 4; ++e) of[q].word[w + e] = 32 * (w + e) < n ? entry_bits(own[q][e]) : 0;
    }
  }
}

// A bit for each lane with a flag.
DEVICE unsigned lane_bits(bool flag) {
#if SIMENGINE_GPU && LANES == 32
  return lane_ballot(flag);
#else
  return unsigned(lane_or(int(unsigned(flag) << lane())));
#endif
}

// Join the branches of all dofs of a support, unless it is part of the last one that was joined.
DEVICE void join_support(const BranchRows& B, const Support& s, Support& joined) {
  unsigned more = 0;
  UNROLLED for (int w = 0; w < 8; ++w) more |= s.word[w] & ~joined.word[w];
  if (!more) return;
  joined = s;
  if (lane() == 0) {
    int upper = -1;
    UNROLLED for (int w = 7; w >= 0; --w) {
      unsigned left = s.word[w];
      ROLLED while (left) {
        const int bit = top_bit(left), i = 32 * w + bit;
        left ^= 1u << bit;
        if (upper >= 0) join_branches(B.parent, upper, i);
        upper = i;
      }
    }
  }
}

// Is dof `low` on the branch of dof `high`, which is not below it?
DEVICE bool on_branch(const Model& m, int low, int high) {
  const int own = m.dof_bodyid()[low], other = m.dof_bodyid()[high];
  return own <= other && other <= m.body_last()[own];
}

// Join branches that constraint rows couple. together(r) is the number of rows from row r on that couple all of their
// dofs; 0 for a row that an earlier one includes. few(r) are the dofs of row r, if its type tells them: such a row is
// looked at only if it couples two branches. The order of joins makes no difference.
template <typename Together, typename Few>
DEVICE void join_rows(const Model& m, const BranchRows& B, int nrow, const real* J, int stride, Together together,
                      Few few) {
  Support joined = {{0, 0, 0, 0, 0, 0, 0, 0}}, all = joined;
  int open = 0;  // rows that belong to `all` and are still to come
  ROLLED for (int first = 0; first < nrow; first += LANES) {
    const int own = first + lane();
    const FewDofs dofs = own < nrow ? few(own) : FewDofs();
    unsigned pairs = lane_bits(dofs.high >= 0 && !on_branch(m, dofs.low, dofs.high));
    unsigned others = lane_bits(own < nrow && dofs.low < 0);
    if (lane() == 0) {
      ROLLED for (; pairs; pairs &= pairs - 1) {
        const FewDofs pair = few(first + low_bit(pairs));
        join_branches(B.parent, pair.high, pair.low);
      }
    }
    ROLLED while (others) {
      int rows[4] = {0, 0, 0, 0}, number = 0;
      UNROLLED for (int q = 0; q < 4; ++q) {
        if (!others) continue;
        rows[q] = first + low_bit(others);
        others &= others - 1;
        number = q + 1;
      }
      Support of[4];
      find_supports(B.n, J, rows, number, stride, of);
      UNROLLED for (int q = 0; q < 4; ++q) {
        if (q >= number) continue;
        if (!open) open = together(rows[q]);
        else {
          UNROLLED for (int w = 0; w < 8; ++w) of[q].word[w] |= all.word[w];
        }
        all = of[q];
        if (open && --open == 0) join_support(B, all, joined);
      }
    }
  }
  lane_sync();
}

// Where the rows of the matrix start, given depths.
DEVICE void start_rows(const BranchRows& B) {
  int next = 0;
  ROLLED for (int first = 0; first < B.n; first += LANES) {
    const int i = first + lane(), words = i < B.n ? (B.place[i] + 4) & ~3 : 0;
    int total;
    const int before = lane_scan(words, &total);
    if (i < B.n) B.start[i] = next + before;
    next += total;
  }
}

// List the dofs on the branches that end in a leaf. Every dof takes the first list that it is on.
DEVICE void list_branches(const BranchRows& B) {
  int *inner = reinterpret_cast<int*>(B.c), *list = reinterpret_cast<int*>(B.v);  // dofs that are no leaves, by bits
  LANE_FOR(i, B.n) {
    int depth = 0;
    ROLLED for (int up = B.parent[i]; up >= 0; up = B.parent[up]) ++depth;
    B.place[i] = depth;
    list[i] = 0xffff;
    if (32 * i < B.n) inner[i] = 0;
  }
  lane_sync();
  LANE_FOR(i, B.n) {
    if (B.parent[i] >= 0) raise_bit(inner + B.parent[i] / 32, B.parent[i] % 32);
  }
  start_rows(B);
  lane_sync();
  int next = 0;
  ROLLED for (int first = 0; first < B.n; first += LANES) {
    const int i = first + lane();
    const bool leaf = i < B.n && !(inner[i / 32] >> (i & 31) & 1);
    int total;
    const int own = next + lane_scan(leaf ? (B.place[i] + 4) & ~3 : 0, &total);
    int up = i;
    ROLLED for (int t = leaf ? B.place[i] : -1; t >= 0; --t) {
      B.dofs[own + t] = (unsigned char)up;
      lower_at(list + up, own);
      up = B.parent[up];
    }
    next += total;
  }
  lane_sync();
  LANE_FOR(i, B.n) B.place[i] |= list[i] << 16 | (i > 0 && B.parent[i] == i - 1 ? 0x8000 : 0);
  lane_sync();
}

// The branches of the trees, joined where constraint rows couple some of them; together(r) and few(r) as in join_rows.
template <typename Together, typename Few>
DEVICE BranchRows branches_of(const Model& m, int nrow, const real* J, int stride, Together together, Few few,
                              real* memory) {
  const BranchRows B = place_branches(memory, m.nv(), m.njoined() + m.nvp());
  LANE_FOR(i, B.n) B.parent[i] = m.dof_parentid()[i];
  lane_sync();
  join_rows(m, B, nrow, J, stride, together, few);
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
