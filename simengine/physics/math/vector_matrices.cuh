// Linear algebra of one world on the host, with columns of a matrix, or rows of a Jacobian, as the entries of vectors.
// Each entry of a result sees the same operations in the same order as in the loops over memory (dense.cuh,
// linalg.cuh), and so has their bits. padded_matrix.cuh has the matrix itself.
#pragma once

#ifdef MATRIX_VECTORS
// L becomes the Cholesky factor of A, zero above the diagonal. A may be L; only its lower triangle is read.
DEVICE_CALL void factor_in_vectors(REAL* L, const REAL* A, int n) {
  PaddedMatrix H(n);
  Lanes none[MOST_VECTORS] = {};
  H.load_lower(A);
  H.factor(none);
  H.turn();
  H.store_lower(L);
}

// The inverse of a matrix of at most MOST_INVERTED dofs, given its Cholesky factor L: a solution is then one product,
// where substitutions would wait for each other. Its columns are found together, as the entries of vectors.
#define MOST_INVERTED 16
struct VectorInverse {
  static constexpr int VECTORS = MOST_INVERTED / VECTOR_WIDTH;
  int n;
  Lanes column[MOST_INVERTED][VECTORS];

  static void add(Lanes* out, REAL scale, const Lanes* x) {
    for (int q = 0; q < VECTORS; ++q) out[q] = vector_fma(every(scale), x[q], out[q]);
  }

  VectorInverse(const REAL* L, int size) : n(size <= MOST_INVERTED ? size : 0) {
    REAL inverse[MOST_INVERTED];
    for (int k = 0; k < n; ++k) {
      Lanes* own = column[k];
      for (int q = 0; q < VECTORS; ++q) own[q] = Lanes{};
      own[k / VECTOR_WIDTH][k % VECTOR_WIDTH] = 1;
      for (int j = 0; j < k; ++j) add(own, -L[k * n + j], column[j]);
      inverse[k] = 1 / L[k * n + k];
      for (int q = 0; q < VECTORS; ++q) own[q] *= every(inverse[k]);
    }
    for (int k = n - 1; k >= 0; --k) {
      Lanes* own = column[k];
      for (int j = k + 1; j < n; ++j) add(own, -L[j * n + k], column[j]);
      for (int q = 0; q < VECTORS; ++q) own[q] *= every(inverse[k]);
    }
  }
  // In place: x becomes the solution of L L' x = x.
  void solve(REAL* x) const {
    Lanes even[VECTORS] = {}, odd[VECTORS] = {};
    for (int k = 0; k < n; k += 2) {
      add(even, x[k], column[k]);
      if (k + 1 < n) add(odd, x[k + 1], column[k + 1]);
    }
    for (int q = 0; q < VECTORS; ++q) {
      if (q * VECTOR_WIDTH < n) store_words(x + q * VECTOR_WIDTH, even[q] + odd[q], n - q * VECTOR_WIDTH);
    }
  }
};

// In place: x becomes the solution of L L' x = x.
DEVICE_CALL void solve_in_vectors(REAL* x, const REAL* L, int n) {
  const int vectors = (n + VECTOR_WIDTH - 1) / VECTOR_WIDTH;
  Lanes y[MOST_VECTORS], column[VECTOR_WIDTH];
  for (int q = 0; q < vectors; ++q) y[q] = load_words(x + q * VECTOR_WIDTH, n - q * VECTOR_WIDTH);
  for (int p = 0; p < vectors; ++p) {
    const int first = p * VECTOR_WIDTH, columns = n - first < VECTOR_WIDTH ? n - first : VECTOR_WIDTH;
    const REAL* solved = reinterpret_cast<const REAL*>(y + p);
    Lanes own = y[p];
    load_columns(column, L + first * n + first, n, n - first, columns);
    for (int k = 0; k < columns; ++k) {
      own = substitute(own, column[k], k, every(L[(first + k) * n + first + k]), places() > k);
    }
    y[p] = own;
    for (int q = p + 1; q < vectors; ++q) {
      Lanes other = y[q];
      load_columns(column, L + q * VECTOR_WIDTH * n + first, n, n - q * VECTOR_WIDTH, columns);
      for (int k = 0; k < columns; ++k) other = vector_fma(every(-solved[k]), column[k], other);
      y[q] = other;
    }
  }
  for (int p = vectors - 1; p >= 0; --p) {
    const int first = p * VECTOR_WIDTH, columns = n - first < VECTOR_WIDTH ? n - first : VECTOR_WIDTH;
    const REAL* solved = reinterpret_cast<const REAL*>(y + p);
    Lanes own = y[p];
    for (int k = columns - 1; k >= 0; --k) {
      const REAL* row = L + (first + k) * n + first;
      own = substitute(own, load_words(row, k), k, every(row[k]), places() < k);
    }
    y[p] = own;
    for (int q = 0; q < p; ++q) {
      Lanes other = y[q];
      for (int k = columns - 1; k >= 0; --k) {
        const REAL* row = L + (first + k) * n + q * VECTOR_WIDTH;
        other = vector_fma(every(-solved[k]), load_words(row, VECTOR_WIDTH), other);
      }
      y[q] = other;
    }
  }
  for (int q = 0; q < vectors; ++q) store_words(x + q * VECTOR_WIDTH, y[q], n - q * VECTOR_WIDTH);
}

// In place: x becomes the solution of A x = x, by elimination without pivoting, as in lu_solve.
DEVICE_CALL void eliminate_in_vectors(REAL* x, const REAL* A, int n) {
  PaddedMatrix H(n);
  const int vectors = H.vectors;
  const Truths place = places();
  Lanes y[MOST_VECTORS];
  REAL* word = reinterpret_cast<REAL*>(y);
  for (int q = 0; q < vectors; ++q) y[q] = load_words(x + q * VECTOR_WIDTH, H.columns_from(q));
  for (int i = 0; i < n; ++i) {
    for (int q = 0; q < vectors; ++q) H.row(i)[q] = load_words(A + i * n + q * VECTOR_WIDTH, H.columns_from(q));
  }
  for (int k = 0; k < n - 1; ++k) {
    const REAL inverse = reciprocal_(H.words(k)[k]);
    const Lanes* own = H.row(k);
    for (int i = k + 1; i < n; ++i) {
      const REAL factor = H.words(i)[k] * inverse;
      if (factor == 0) continue;
      Lanes* other = H.row(i);
      for (int q = (k + 1) / VECTOR_WIDTH; q < vectors; ++q) other[q] = vector_fma(every(-factor), own[q], other[q]);
      word[i] = fma_(-factor, word[k], word[i]);
    }
  }
  H.turn();
  H.solve_upper(y);
  for (int q = 0; q < vectors; ++q) store_words(x + q * VECTOR_WIDTH, y[q], H.columns_from(q));
}

// out[r] = row r of J times x, for rows of `stride` words.
DEVICE_CALL void rows_times_in_vectors(int nrow, const REAL* J, int stride, const REAL* x, REAL* out) {
  for (int first = 0; first < nrow; first += VECTOR_WIDTH) {
    Lanes sum = {};
    for (int begin = 0; begin < stride; begin += VECTOR_WIDTH) {
      const int columns = stride - begin < VECTOR_WIDTH ? stride - begin : VECTOR_WIDTH;
      Lanes column[VECTOR_WIDTH];
      load_columns(column, J + size_t(first) * stride + begin, stride, nrow - first, columns);
      for (int k = 0; k < columns; ++k) sum = vector_fma(column[k], every(x[begin + k]), sum);
    }
    store_words(out + first, sum, nrow - first);
  }
}

// out = y + sum over rows of f[r] J[r], for n entries; y may be null.
DEVICE_CALL void add_rows_in_vectors(int nrow, const REAL* J, int stride, const REAL* f, const REAL* y, REAL* out,
                                     int n) {
  for (int begin = 0; begin < n; begin += VECTOR_WIDTH) {
    Lanes sum = y ? load_words(y + begin, n - begin) : Lanes{};
    for (int r = 0; r < nrow; ++r) {
      sum = vector_fma(load_words(J + size_t(r) * stride + begin, n - begin), every(f[r]), sum);
    }
    store_words(out + begin, sum, n - begin);
  }
}

// out = A x for a symmetric matrix.
DEVICE_CALL void multiply_in_vectors(const REAL* A, const REAL* x, REAL* out, int n) {
  for (int begin = 0; begin < n; begin += VECTOR_WIDTH) {
    Lanes sum = {};
    for (int j = 0; j < n; ++j) sum = vector_fma(load_words(A + j * n + begin, n - begin), every(x[j]), sum);
    store_words(out + begin, sum, n - begin);
  }
}

// The sum of all entries of a vector: those of its second half are added to those of the first, and so on.
template <int HALF, int... J>
DEVICE Lanes add_from(Lanes x, Places<J...>) {
  return x + blend<(J + HALF) % VECTOR_WIDTH...>(x, x);
}
DEVICE REAL sum_of_halves(Lanes x) {
  const PlacesBelow<VECTOR_WIDTH> all{};
  if (VECTOR_WIDTH > 8) x = add_from<VECTOR_WIDTH / 2 < 8 ? 1 : 8>(x, all);
  if (VECTOR_WIDTH > 4) x = add_from<VECTOR_WIDTH / 2 < 4 ? 1 : 4>(x, all);
  if (VECTOR_WIDTH > 2) x = add_from<VECTOR_WIDTH / 2 < 2 ? 1 : 2>(x, all);
  return add_from<1>(x, all)[0];
}

// Dot product of two functions of an index below n, which return vectors of entries from that index on, zero from n on.
// Sixteen partial sums are added up in one order, whatever the width of the vectors.
template <class Left, class Right>
DEVICE REAL dot_in_vectors(int n, const Left& left, const Right& right) {
  const int parts = 16 / VECTOR_WIDTH;
  Lanes sum[parts] = {};
  for (int begin = 0; begin < n; begin += 16) {
    for (int p = 0; p < parts && begin + p * VECTOR_WIDTH < n; ++p) {
      sum[p] = vector_fma(left(begin + p * VECTOR_WIDTH), right(begin + p * VECTOR_WIDTH), sum[p]);
    }
  }
  for (int far = parts / 2; far; far /= 2) {
    for (int p = 0; p < far; ++p) sum[p] += sum[p + far];
  }
  return sum_of_halves(sum[0]);
}
#endif
