// Sums of products in matrices on the host. In matrices whose rows have one vector, the rows stay in registers while
// products are added; each entry sees the same operations as in PaddedMatrix::add_products.
#pragma once

#ifdef MATRIX_VECTORS
// Products c v' that are added to a matrix PANEL at a time.
struct Products {
  PaddedMatrix& H;
  int number = 0;
  Lanes c[PANEL][MOST_VECTORS], v[PANEL][MOST_VECTORS];

  explicit Products(PaddedMatrix& H) : H(H) {}
  // Count the pair that was put into c[number] and v[number].
  void added() {
    if (++number == PANEL) flush();
  }
  void flush() {
    if (!number) return;
    for (; number < PANEL; ++number) {
      for (int q = 0; q < H.vectors; ++q) c[number][q] = v[number][q] = Lanes{};
    }
    H.add_products(c, v);
    number = 0;
  }
};

// The first ROWS rows of a matrix, of which those from `H.n` on mean nothing.
template <int ROWS>
struct RegisterProducts {
  PaddedMatrix& H;
  Lanes of[ROWS];

  explicit RegisterProducts(PaddedMatrix& H) : H(H) { take(); }
  void take() {
#pragma GCC unroll 16
    for (int k = 0; k < ROWS; ++k) of[k] = k < H.n ? H.row(k)[0] : Lanes{};
  }
  void put() const {
#pragma GCC unroll 16
    for (int k = 0; k < ROWS; ++k) {
      if (k < H.n) H.row(k)[0] = of[k];
    }
  }
  // H += c v', for ROWS words c.
  void add(const REAL* c, Lanes v) {
#pragma GCC unroll 16
    for (int k = 0; k < ROWS; ++k) of[k] = vector_fma(every(c[k]), v, of[k]);
  }
};

// Let `add` add to a matrix with the stride of J as a constant. Returns false where the rows of H are longer than one
// vector, or there is no form for the stride.
template <class Add>
DEVICE bool in_registers(const PaddedMatrix& H, int stride, const Add& add) {
  if (H.vectors != 1 || stride > VECTOR_WIDTH) return false;
  if (stride == 8) {
    add(Number<8>());
  } else if (stride == 12) {
    add(Number<12>());
  } else if (stride == 16) {
    add(Number<16>());
  } else {
    return false;
  }
  return true;
}

// Part of solve_with_rows_in_vectors, where a row of H is one vector: H += J' D J and right -= J' D residual, over rows
// that push.
template <int ROWS>
DEVICE_CALL void add_pushes_in_registers(PaddedMatrix& H, Lanes* right, int nrow, const REAL* J, const REAL* D,
                                         const REAL* residual) {
  RegisterProducts<ROWS> products(H);
  Lanes sum = right[0];
  for (int r = 0; r < nrow; ++r) {
    if (!(residual[r] < 0)) continue;
    const REAL* row = J + size_t(r) * ROWS;
    const Lanes scaled = every(D[r]) * H.part(row, 0);
    sum = vector_fma(every(-residual[r]), scaled, sum);
    products.add(row, scaled);
  }
  right[0] = sum;
  products.put();
}

// As solve_by_loops. Matrices of more than MOST_FORWARD rows are factored from the last row on.
DEVICE_CALL REAL solve_with_rows_in_vectors(REAL* x, const REAL* A, const REAL* d, REAL scale, int nrow, const REAL* J,
                                            int stride, const REAL* D, const REAL* residual, const REAL* b,
                                            REAL* gradient, REAL floor, int n) {
  PaddedMatrix H(n, n > MOST_FORWARD, n > MOST_FILLED);
  const int vectors = H.vectors;
  Lanes right[MOST_VECTORS];
  const REAL* word = reinterpret_cast<const REAL*>(right);
  REAL norm = 0;
  H.load(A);
  for (int i = 0; i < n && scale != 0; ++i) H.words(H.at(i))[H.at(i)] += scale * d[i];
  for (int q = 0; q < vectors; ++q) right[q] = H.part(b, q) + every(0);
  Products products(H);
  const auto add = [&](auto ROWS) { add_pushes_in_registers<ROWS.value>(H, right, nrow, J, D, residual); };
  const bool added = in_registers(H, stride, add);
  for (int r = 0; r < nrow && !added; ++r) {
    if (!(residual[r] < 0)) continue;
    Lanes *row = products.c[products.number], *scaled = products.v[products.number];
    for (int q = 0; q < vectors; ++q) {
      row[q] = H.part(J + size_t(r) * stride, q);
      scaled[q] = every(D[r]) * row[q];
      right[q] = vector_fma(every(-residual[r]), scaled[q], right[q]);
    }
    products.added();
  }
  for (int i = 0; i < n; ++i) {
    const REAL entry = word[H.at(i)];
    if (gradient) gradient[i] = entry;
    norm = fma_(entry, entry, norm);
  }
  if (gradient && norm < floor) return norm;
  products.flush();
  H.solve(x, right);
  return norm;
}
#endif
