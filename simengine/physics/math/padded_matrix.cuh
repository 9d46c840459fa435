// A matrix of one world on the host, with its columns as the entries of vectors. Each entry of a result sees the same
// operations in the same order as in the loops over memory (dense.cuh, linalg.cuh), and so has their bits.
#pragma once

#if defined(VECTOR_BYTES) && !defined(TILE) && LANES == 1
#define MATRIX_VECTORS
#define MOST_VECTORS (192 / VECTOR_WIDTH)  // of a row of a matrix
#define FEWEST_COLUMNS 6                   // smaller matrices have too few entries for vectors
#define FEWEST_VECTOR_ROWS 4
#define PANEL 4
#define MOST_FILLED 32  // rows of a matrix in which zeros are not looked for
// Rows of a matrix that is factored from its first row on. Larger ones are factored from their last row on, except of
// islands, whose many trees are coupled by contacts.
#ifdef UNIT_ISLAND
#define MOST_FORWARD (MOST_VECTORS * VECTOR_WIDTH)
#else
#define MOST_FORWARD MOST_FILLED
#endif

DEVICE bool fits_vectors(int n) { return n >= FEWEST_COLUMNS && n <= MOST_VECTORS * VECTOR_WIDTH; }

// One step of a substitution: entry `place` of x is divided by its pivot, and its multiple of a column is subtracted
// from the entries that remain.
DEVICE Lanes substitute(Lanes x, Lanes column, int place, Lanes pivot, Truths remain) {
  const Lanes solved = spread(x, place) / pivot, changed = vector_fma(-solved, column, x);
  return remain ? changed : places() == place ? solved : x;
}

// In which entries one of PANEL vectors that are `stride` apart has bits, by bits. Branches on zeros would often be
// predicted wrongly.
DEVICE unsigned entries_of(const Lanes* x, int stride) {
  return bits_of(any_bits(x[0], x[stride], x[2 * stride], x[3 * stride]) != Truths{});
}

// A square matrix whose rows are padded to whole vectors. While it is factored, only entries from the diagonal on mean
// anything: those before it in the vector of the diagonal, and those behind the last column, are overwritten with
// anything.
//
// Backward, its rows and columns are in opposite order, behind the padding. The dofs of a tree are then eliminated from
// the leaves to the root, so that those of different branches remain apart.
//
// In a sparse matrix, whose zeros have no sign, vectors of zeros are skipped.
struct PaddedMatrix {
  int n, vectors;  // columns, and vectors of a row
  bool backward, sparse;
  int begin, end;                           // its rows
  bool blocks[MOST_VECTORS][MOST_VECTORS];  // after factor(): may L' have entries in both vectors?
  Lanes of[MOST_VECTORS * VECTOR_WIDTH * MOST_VECTORS];

  explicit PaddedMatrix(int n, bool backward = false, bool sparse = false)
      : n(n), vectors((n + VECTOR_WIDTH - 1) / VECTOR_WIDTH), backward(backward), sparse(sparse) {
    begin = backward ? vectors * VECTOR_WIDTH - n : 0;
    end = begin + n;
    for (int p = 0; p < vectors; ++p) {
      for (int q = p; q < vectors; ++q) blocks[p][q] = !backward || panel_of(p) == panel_of(q);
    }
    for (int i = begin / PANEL * PANEL; i < begin; ++i) {
      for (int q = 0; q < vectors; ++q) row(i)[q] = Lanes{};
    }
  }
  // The panel of the first row of a vector.
  static int panel_of(int q) { return q * VECTOR_WIDTH / PANEL; }
  Lanes* row(int i) { return of + i * vectors; }
  REAL* words(int i) { return reinterpret_cast<REAL*>(row(i)); }
  // The row and column of dof i.
  int at(int i) const { return backward ? vectors * VECTOR_WIDTH - 1 - i : i; }
  // Number of columns from the first of vector q on.
  int columns_from(int q) const { return n - q * VECTOR_WIDTH; }
  // The first row whose diagonal is in a later vector than that of row i, or the end.
  int next_vector(int i) const {
    const int next = (i / VECTOR_WIDTH + 1) * VECTOR_WIDTH;
    return next < end ? next : end;
  }

  // Vector q of n words, in the order of the columns, zero in the padding.
  Lanes part(const REAL* x, int q) const {
    if (!backward) return load_words(x + q * VECTOR_WIDTH, columns_from(q));
    const int other = vectors - 1 - q;
    return reversed(load_words(x + other * VECTOR_WIDTH, columns_from(other)));
  }

  // The upper triangle of a symmetric matrix.
  void load(const REAL* A) {
    for (int i = begin; i < end; ++i) {
      Lanes* own = row(i);
      for (int q = i / VECTOR_WIDTH; q < vectors; ++q) own[q] = part(A + at(i) * n, q) + every(0);
    }
  }

  // The same from the lower triangle, for a matrix that is not backward.
  void load_lower(const REAL* A) {
    for (int p = 0; p < vectors; ++p) {
      for (int q = p; q < vectors; ++q) {
        Lanes x[VECTOR_WIDTH];
        load_columns(x, A + size_t(q) * VECTOR_WIDTH * n + p * VECTOR_WIDTH, n, columns_from(q), columns_from(p));
        for (int k = 0; k < VECTOR_WIDTH; ++k) row(p * VECTOR_WIDTH + k)[q] = x[k];
      }
    }
  }

  // H += c v' for PANEL pairs of vectors, one after another, whose padding is zero.
  void add_products(const Lanes (*c)[MOST_VECTORS], const Lanes (*v)[MOST_VECTORS]) {
    int used[MOST_VECTORS], number = 0;
    for (int q = 0; q < vectors; ++q) {
      const Truths bits = any_bits(c[0][q], c[1][q], c[2][q], c[3][q]) | any_bits(v[0][q], v[1][q], v[2][q], v[3][q]);
      if (has_bits(bits)) used[number++] = q;
    }
    for (int u = 0; u < number; ++u) {
      const int first = used[u] * VECTOR_WIDTH;
      for (unsigned left = entries_of(c[0] + used[u], MOST_VECTORS); left; left &= left - 1) {
        const int k = __builtin_ctz(left);
        Lanes multiple[PANEL], *own = row(first + k);
#pragma GCC unroll 4
        for (int j = 0; j < PANEL; ++j) multiple[j] = every(reinterpret_cast<const REAL*>(c[j] + used[u])[k]);
        for (int w = u; w < number; ++w) {
          Lanes x = own[used[w]];
#pragma GCC unroll 4
          for (int j = 0; j < PANEL; ++j) x = vector_fma(multiple[j], v[j][used[w]], x);
          own[used[w]] = x;
        }
      }
    }
  }

  // The upper triangle becomes that of L', where H = L L', and y becomes L^-1 y. Pivots are those of mem_factor.
  // Columns of L are removed from the rest PANEL at a time, one after another.
  void factor(Lanes* y) {
    REAL *word = reinterpret_cast<REAL*>(y), solved[MOST_VECTORS * VECTOR_WIDTH];
    int used[MOST_VECTORS];
    for (int q = 0; sparse && q < vectors; ++q) y[q] += every(0);  // products with zeros then leave it as it is
    for (int first = begin / PANEL * PANEL; first < end; first += PANEL) {
      const int next = first + PANEL < end ? first + PANEL : end, number = used_by(first, next, used);
      factor_panel(first, used, number, y, solved);
      if (next < end) remove_panel(first, next, used, number);
    }
    for (int k = begin; k < end; ++k) word[k] = solved[k];
    for (int q = 0; backward && q < vectors; ++q) y[q] += every(0);  // zeros without a sign may be skipped
  }

  // The same for the rows of one panel, of which those outside the matrix mean nothing. What they and y have in its
  // columns is found first, number by number: each waits for a root and a quotient of the one before it, for which
  // whole vectors would wait, too.
  void factor_panel(int first, const int* used, int number, Lanes* y, REAL* solved) {
    REAL u[PANEL][PANEL], pivot[PANEL], right[PANEL], *word = reinterpret_cast<REAL*>(y) + first;
    Lanes inverse[PANEL], taken[PANEL];
#pragma GCC unroll 4
    for (int k = 0; k < PANEL; ++k) {
      right[k] = word[k];
#pragma GCC unroll 4
      for (int c = k; c < PANEL; ++c) u[k][c] = words(first + k)[first + c];
    }
#pragma GCC unroll 4
    for (int k = 0; k < PANEL; ++k) {
#pragma GCC unroll 4
      for (int j = 0; j < k; ++j) {
#pragma GCC unroll 4
        for (int c = k; c < PANEL; ++c) u[k][c] = fma_(-u[j][k], u[j][c], u[k][c]);
      }
      pivot[k] = sqrt_(u[k][k] <= 0 ? REAL_MAX : u[k][k]);
      const REAL reciprocal = R(1.0) / pivot[k], quotient = right[k] / pivot[k];
#pragma GCC unroll 4
      for (int c = k + 1; c < PANEL; ++c) {
        u[k][c] *= reciprocal;
        right[c] = fma_(u[k][c], -quotient, right[c]);
      }
      inverse[k] = every(reciprocal);
      taken[k] = every(-quotient);
      solved[first + k] = quotient;
    }
    for (int w = 0; w < number; ++w) {
      Lanes x[PANEL], right_side = y[used[w]], *own = row(first) + used[w];
#pragma GCC unroll 4
      for (int k = 0; k < PANEL; ++k) {
        x[k] = own[k * vectors];
#pragma GCC unroll 4
        for (int j = 0; j < k; ++j) x[k] = vector_fma(every(-u[j][k]), x[j], x[k]);
        x[k] *= inverse[k];
        right_side = vector_fma(x[k], taken[k], right_side);
        own[k * vectors] = x[k];
      }
      y[used[w]] = right_side;
    }
    for (int k = 0; k < PANEL; ++k) words(first + k)[first + k] = pivot[k];
  }

  // The vectors, from the diagonal on, in which one of the rows of a panel may have entries.
  int used_by(int first, int next, int* used) const {
    int number = 0;
    for (int q = first / VECTOR_WIDTH; q < vectors; ++q) {
      const Lanes* own = of + first * vectors + q;
      const bool all = !sparse || next - first < PANEL;
      if (all || has_bits(any_bits(own[0], own[vectors], own[2 * vectors], own[3 * vectors]))) used[number++] = q;
    }
    return number;
  }

  // Subtract the products of PANEL columns of L, which have entries in `used` vectors, from the rows from `from` on.
  void remove_panel(int first, int from, const int* used, int number) {
    for (int u = 0; u < number; ++u) {
      for (int p = first / VECTOR_WIDTH; p * VECTOR_WIDTH < from; ++p) blocks[p][used[u]] = true;
    }
    for (int u = 0; u < number; ++u) {
      const int start = used[u] * VECTOR_WIDTH, low = start < from ? from : start, high = next_vector(start);
      if (low >= high) continue;
      const unsigned entries = entries_of(row(first) + used[u], vectors);
      const unsigned rows = entries >> (low - start) & ((2u << (high - low - 1)) - 1);
      int w = u;
      for (; w + 2 <= number; w += 2) remove_from<2>(first, low, rows, used + w);
      if (w < number) remove_from<1>(first, low, rows, used + w);
    }
  }
  // The same from some of the rows from `low` on, by bits.
  template <int COUNT>
  void remove_from(int first, int low, unsigned rows, const int* used) {
    const int stride = vectors, near = used[0], far = used[COUNT - 1] - near;
    Lanes own[PANEL][COUNT];
#pragma GCC unroll 4
    for (int j = 0; j < PANEL; ++j) {
#pragma GCC unroll 4
      for (int p = 0; p < COUNT; ++p) own[j][p] = -row(first + j)[near + p * far];
    }
    for (; rows; rows &= rows - 1) {
      const int i = low + __builtin_ctz(rows);
      const REAL* entry = words(first) + i;
      Lanes* out = row(i) + near;
#pragma GCC unroll 4
      for (int p = 0; p < COUNT; ++p) {
        Lanes x = out[p * far];
#pragma GCC unroll 4
        for (int j = 0; j < PANEL; ++j) x = vector_fma(every(entry[j * stride * VECTOR_WIDTH]), own[j][p], x);
        out[p * far] = x;
      }
    }
  }

  // From the upper triangle of L' make L, whose entries above the diagonal mean nothing.
  void turn() {
    for (int p = 0; p < vectors; ++p) {
      for (int q = p; q < vectors; ++q) {
        if (q > p && !blocks[p][q]) continue;
        Lanes x[VECTOR_WIDTH];
        for (int k = 0; k < VECTOR_WIDTH; ++k) x[k] = row(p * VECTOR_WIDTH + k)[q];
        transpose(x);
        for (int k = 0; k < VECTOR_WIDTH; ++k) row(q * VECTOR_WIDTH + k)[p] = x[k];
      }
    }
  }

  // After turn(): x = L'^-1 x.
  void solve_upper(Lanes* x) {
    const int stride = vectors;
    for (int p = stride - 1; p >= 0; --p) {
      const int first = p * VECTOR_WIDTH, low = first < begin ? begin - first : 0, high = next_vector(first) - first;
      const REAL* solved = reinterpret_cast<const REAL*>(x + p);
      Lanes own = x[p];
      for (int k = high - 1; k >= low; --k) {
        own = substitute(own, row(first + k)[p], k, every(words(first + k)[first + k]), places() < k);
      }
      x[p] = own;
      for (int q = 0; q < p; ++q) {
        if (!blocks[q][p]) continue;
        const Lanes* column = row(first) + q;
        Lanes other = x[q];
        for (int k = high - 1; k >= low; --k) other = vector_fma(every(-solved[k]), column[k * stride], other);
        x[q] = other;
      }
    }
  }

  // x = H^-1 y, for x of n words and a vector y whose padding is zero; factors the matrix, and overwrites y.
  void solve(REAL* x, Lanes* y) {
    factor(y);
    turn();
    solve_upper(y);
    for (int q = 0; q < vectors; ++q) {
      if (backward) {
        const int other = vectors - 1 - q;
        store_words(x + other * VECTOR_WIDTH, reversed(y[q]), columns_from(other));
      } else {
        store_words(x + q * VECTOR_WIDTH, y[q], columns_from(q));
      }
    }
  }

  // After turn(), for a matrix that is not backward: L, zero above the diagonal.
  void store_lower(REAL* L) {
    const Truths place = places();
    for (int i = 0; i < n; ++i) {
      for (int q = 0; q < vectors; ++q) {
        const Lanes x = place + q * VECTOR_WIDTH <= Truths{} + i ? row(i)[q] : Lanes{};
        store_words(L + i * n + q * VECTOR_WIDTH, x, columns_from(q));
      }
    }
  }
};
#endif
