// Newton's direction in a large island of small blocks by a sparse factor of its Hessian, on the host.
//
// Rows of blocks are vectors of eight entries, whose padding is zero. Row k of the matrix, in the order of elimination,
// holds its own block and those beside it in which the factor has entries. H = U' U is factored in place:
//
//   for each row k      U_kk = the factor of H_kk,  U_kj = U_kk'^-1 H_kj for its entries j,  y_k = U_kk'^-1 b_k
//                       H_ij -= U_ki' U_kj  and  b_j -= U_kj' y_k  for its entries i <= j
//   backward            x_k = U_kk^-1 (y_k - sum over j of U_kj x_j)
#pragma once

#ifdef MATRIX_VECTORS
#define MOST_SPARSE_VECTORS 49152
#define MOST_SPARSE_RUNS 4096

struct SparseHessian {
  EliminationOrder order;
  int size[MOST_SPARSE_BLOCKS], at[MOST_SPARSE_BLOCKS];  // of each place: dofs, and the first vector of its row
  int vectors;                                           // of all rows
  int beside[MOST_SPARSE_RUNS];                          // of a run over two blocks: where it adds beside them
  Eight y[MOST_SPARSE_BLOCKS];
  Eight of[MOST_SPARSE_VECTORS];

  // The rows of an entry of the row at place k.
  Eight* rows_of(int k, int entry) { return of + at[k] + (entry - order.first[k]) * size[k]; }

  // Find the order of an island, and where its runs add to the matrix. Returns false if there is no room.
  bool prepare(const LargeIsland& s) {
    const bool found = s.nrun <= MOST_SPARSE_RUNS && order.find(s.nblock, s.nrun, [&](int k, int* b) {
      const int* block = s.row_block + 2 * s.run[RUN_WORDS * k + RUN_ROW];
      b[0] = block[0], b[1] = block[1];
    });
    if (!found) return false;
    vectors = 0;
    for (int k = 0; k < order.n; ++k) {
      size[k] = s.blocks[BLOCK_WORDS * order.block[k] + BLOCK_SIZE];
      at[k] = vectors;
      vectors += size[k] * (order.first[k + 1] - order.first[k]);
    }
    if (vectors > MOST_SPARSE_VECTORS) return false;
    for (int k = 0; k < s.nrun; ++k) {
      int from, to;
      beside[k] = places_of_run(s, k, &from, &to) ? int(rows_of(from, order.entry(from, to)) - of) : 0;
    }
    return true;
  }

  // The places of the blocks of a run, the earlier first; false if it has one block.
  bool places_of_run(const LargeIsland& s, int k, int* from, int* to) const {
    const int* block = s.row_block + 2 * s.run[RUN_WORDS * k + RUN_ROW];
    const int first = order.place[block[0]], second = block[1] < 0 ? first : order.place[block[1]];
    *from = first < second ? first : second;
    *to = first < second ? second : first;
    return block[1] >= 0;
  }

  // H = M + J' W J
  void assemble(const Model& m, const LargeIsland& s, const Rows& rows, const real* weight) {
    for (int i = 0; i < vectors; ++i) of[i] = Eight{};
    for (int k = 0; k < order.n; ++k) {
      const real* inertia = s.M + m.block_adr()[s.blocks[BLOCK_WORDS * order.block[k] + BLOCK_NUMBER]];
      for (int i = 0; i < size[k]; ++i) of[at[k] + i] = load_eight(inertia + i * size[k], size[k]);
    }
    for (int k = 0; k < s.nrun; ++k) {
      const int* run = s.run + RUN_WORDS * k;
      int from, to;
      const bool two = places_of_run(s, k, &from, &to);
      const bool turned = two && from != order.place[s.row_block[2 * run[RUN_ROW]]];
      const int n1 = run[turned ? RUN_SIZE2 : RUN_SIZE1], n2 = run[turned ? RUN_SIZE1 : RUN_SIZE2];
      const RunSide side[2] = {
          {n1, turned ? n2 : 0, reinterpret_cast<real*>(of + at[from]), 8},
          {n2, turned ? 0 : n1, reinterpret_cast<real*>(of + at[to]), 8},
      };
      add_run_in_vectors(m, s, rows, weight, run, side, reinterpret_cast<real*>(of + beside[k]), 8);
    }
  }

  // x = inv(H) b; overwrites H.
  void solve(const LargeIsland& s, const real* b, real* x) {
    for (int k = 0; k < order.n; ++k) y[k] = load_eight(b + dof_of(s, k), size[k]);
    for (int k = 0; k < order.n; ++k) {
      if (size[k] == 6) {
        eliminate<6>(k);
      } else {
        eliminate<-1>(k);
      }
    }
    for (int k = order.n - 1; k >= 0; --k) {
      if (size[k] == 6) {
        back_substitute<6>(k);
      } else {
        back_substitute<-1>(k);
      }
      store_eight(x + dof_of(s, k), y[k], size[k]);
    }
  }

 private:
  // The first dof of the block at place k.
  int dof_of(const LargeIsland& s, int k) const { return s.blocks[BLOCK_WORDS * order.block[k] + BLOCK_DOF]; }

  // Row k becomes that of U, and its products are subtracted from later rows.
  template <int N>
  void eliminate(int k) {
    const int n = N < 0 ? size[k] : N, first = order.first[k], end = order.first[k + 1];
    Eight* own = of + at[k];
    real pivot[8], inverse[8], solved[8];
    for (int q = 0; q < n; ++q) {
      Eight x = own[q];
      for (int j = 0; j < q; ++j) x = eight_fma(eight(-own[j][q]), own[j], x);
      pivot[q] = sqrt_(x[q] <= 0 ? REAL_MAX : x[q]);  // see mem_factor
      inverse[q] = R(1.0) / pivot[q];
      own[q] = x * eight(inverse[q]);
    }
    Eight right = y[k];
    for (int q = 0; q < n; ++q) {
      solved[q] = right[q] * inverse[q];
      right = eight_fma(eight(-solved[q]), own[q], right);
    }
    for (int q = 0; q < n; ++q) own[q][q] = inverse[q];
    for (int q = 0; q < n; ++q) y[k][q] = solved[q];
    for (int e = first + 1; e < end; ++e) {
      Eight *other = own + (e - first) * n, sum = y[order.column[e]];
      for (int q = 0; q < n; ++q) {
        Eight x = other[q];
        for (int j = 0; j < q; ++j) x = eight_fma(eight(-own[j][q]), other[j], x);
        other[q] = x * eight(inverse[q]);
        sum = eight_fma(eight(-solved[q]), other[q], sum);
      }
      y[order.column[e]] = sum;
    }
    for (int e = first + 1; e < end; ++e) subtract_products<N>(k, e, end);
  }

  // H_ij -= U_ki' U_kj, where i is the column of entry e, and j those of the entries from it on.
  template <int N>
  void subtract_products(int k, int e, int end) {
    const int n = N < 0 ? size[k] : N, i = order.column[e], n_i = size[i];
    const Eight *own = of + at[k], *left = own + (e - order.first[k]) * n;
    int target = order.first[i];
    for (int other = e; other < end; ++other) {
      while (order.column[target] != order.column[other]) ++target;
      Eight right[N < 0 ? 8 : N], *out = rows_of(i, target);
      for (int q = 0; q < n; ++q) right[q] = -own[(other - order.first[k]) * n + q];
      for (int p = 0; p < n_i; ++p) {
        Eight x = out[p];
        for (int q = 0; q < n; ++q) x = eight_fma(eight(left[q][p]), right[q], x);
        out[p] = x;
      }
    }
  }

  // y of row k becomes that of the solution, after those of later rows.
  template <int N>
  void back_substitute(int k) {
    const int n = N < 0 ? size[k] : N, first = order.first[k], end = order.first[k + 1];
    const Eight* own = of + at[k];
    Eight sum[8] = {};
    for (int e = first + 1; e < end; ++e) {
      const Eight *row = own + (e - first) * n, x = y[order.column[e]];
      for (int q = 0; q < n; ++q) sum[q] = eight_fma(row[q], x, sum[q]);
    }
    for (int q = n - 1; q >= 0; --q) {
      real x = y[k][q] - eight_sum(sum[q]);
      for (int j = q + 1; j < n; ++j) x = fma_(-own[q][j], y[k][j], x);
      y[k][q] = x * own[q][q];
    }
  }
};

// The Hessian of an island whose blocks are small, on this thread; null if there is no room for its factor.
DEVICE_CALL SparseHessian* sparse_hessian(const Model& m, const LargeIsland& s) {
  static thread_local SparseHessian own;
  SparseHessian* hessian = &own;
  asm("" : "+r"(hessian));  // else the compiler looks for the memory of this thread in every loop
  return m.nwidest() <= WIDEST_VECTOR_BLOCK && hessian->prepare(s) ? hessian : nullptr;
}
#endif
