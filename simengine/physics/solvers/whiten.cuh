// Whitened rows: Y = J inv(L') with qM = L L', so that A = J inv(M) J' is Y Y'; and sums along the rows. Each lane
// takes whole rows.
#pragma once

// Sums along a row: its residuals at two accelerations, and its entry on the diagonal of A and of A + R.
struct RowSums {
  real residual, other, norm, regularised;

  DEVICE_METHOD void add_entry(real entry, real qacc, real qacc_other) {
    residual = fma_(entry, qacc, residual);
    other = fma_(entry, qacc_other, other);
  }
  DEVICE_METHOD void add_whitened(real entry) {
    norm = fma_(entry, entry, norm);
    regularised = fma_(entry, entry, regularised);
  }
};

DEVICE RowSums without_entries(const Rows& rows, int r) {
  return {-rows.aref[r], -rows.aref[r], 0, reciprocal_(rows.D[r])};
}

// One entry after another, over memory.
template <class Put>
DEVICE void whiten_over_memory(const Model& m, const Rows& rows, const real* qLD, const real* qacc,
                               const real* qacc_other, real* efc_Y, const Put& put) {
  const int nv = m.nv(), stride = m.nvp();
  LANE_FOR(r, rows.n) {
    const real* J = rows.J + size_t(r) * stride;
    real* Y = efc_Y + size_t(r) * stride;
    RowSums sums = without_entries(rows, r);
    ROLLED for (int k = 0; k < nv; ++k) {
      real x = J[k];
      sums.add_entry(x, qacc[k], qacc_other[k]);
      ROLLED for (int j = 0; j < k; ++j) x = fma_(-qLD[k * nv + j], Y[j], x);
      Y[k] = divide_(x, qLD[k * nv + k]);
      sums.add_whitened(Y[k]);
    }
    ROLLED for (int k = nv; k < stride; ++k) Y[k] = 0;
    put(r, sums);
  }
  lane_sync();
}

#ifdef MATRIX_VECTORS
// The same for VECTOR_WIDTH rows at a time, which are the entries of vectors. Each entry of Y sees the same operations
// in the same order.
template <class Put>
DEVICE void whiten_in_vectors(const Model& m, const Rows& rows, const real* qLD, const real* qacc,
                              const real* qacc_other, real* efc_Y, const Put& put) {
  const int nv = m.nv(), stride = m.nvp();
  Lanes column[MOST_VECTORS * VECTOR_WIDTH];
  for (int first = 0; first < rows.n; first += VECTOR_WIDTH) {
    const int number = rows.n - first < VECTOR_WIDTH ? rows.n - first : VECTOR_WIDTH;
    for (int k = 0; k < nv; k += VECTOR_WIDTH) {
      load_columns(column + k, rows.J + size_t(first) * stride + k, stride, number, nv - k);
    }
    Lanes residual = -load_words(rows.aref + first, number), other = residual, norm = {};
    Lanes regularised = every(1) / load_words(rows.D + first, number);
    for (int k = 0; k < nv; ++k) {
      residual = vector_fma(column[k], every(qacc[k]), residual);
      other = vector_fma(column[k], every(qacc_other[k]), other);
    }
    for (int k = 0; k < nv; k += PANEL) {
      const int end = k + PANEL < nv ? k + PANEL : nv;
      if (end == k + PANEL && !has_bits(any_bits(column[k], column[k + 1], column[k + 2], column[k + 3]))) continue;
      for (int j = k; j < end; ++j) {
        const Lanes own = column[j] = column[j] / every(qLD[j * nv + j]);
        norm = vector_fma(own, own, norm);
        regularised = vector_fma(own, own, regularised);
        for (int i = j + 1; i < end; ++i) column[i] = vector_fma(every(-qLD[i * nv + j]), own, column[i]);
      }
      if (end == nv) break;
      const Lanes own[PANEL] = {-column[k], -column[k + 1], -column[k + 2], -column[k + 3]};
      for (int i = end; i < nv; ++i) {
        const real* L = qLD + i * nv + k;
        Lanes x = column[i];
#pragma GCC unroll 4
        for (int j = 0; j < PANEL; ++j) x = vector_fma(every(L[j]), own[j], x);
        column[i] = x;
      }
    }
    for (int k = nv; k < stride || k % VECTOR_WIDTH; ++k) column[k] = Lanes{};
    for (int k = 0; k < stride; k += VECTOR_WIDTH) {
      transpose(column + k);
      for (int i = 0; i < number; ++i) {
        store_words(efc_Y + size_t(first + i) * stride + k, column[k + i], stride - k);
      }
    }
    for (int i = 0; i < number; ++i) put(first + i, {residual[i], other[i], norm[i], regularised[i]});
  }
}
#endif

#if SIMENGINE_GPU
// Columns of a row in registers: as many as leave registers for loads on their way.
#define MOST_WHITENED (REAL_IS_FLOAT ? 32 : 16)
#define WHITENED (LANES < MOST_WHITENED ? LANES : MOST_WHITENED)

// Up to COUNT entries of a row whose length is a multiple of four; 0 beyond its end.
template <int COUNT>
DEVICE void load_row(const real* row, int length, real* h) {
  UNROLLED for (int j = 0; j < COUNT; j += 4) {
    const Vec4 four = j < length ? *reinterpret_cast<const Vec4*>(row + j) : Vec4{0, 0, 0, 0};
    h[j] = four.x, h[j + 1] = four.y, h[j + 2] = four.z, h[j + 3] = four.w;
  }
}

// Columns of Y from `first` on, COUNT at most, where those before are in memory. They are in registers, so that no
// entry waits for a load of Y, and the lanes read the same entries of L at the same time.
template <int COUNT>
DEVICE void whiten_columns(const real* J, real* Y, const real* qLD, const real* qacc, const real* qacc_other, int first,
                           int nv, int stride, RowSums* sums) {
  const int end = first + COUNT < nv ? first + COUNT : nv;
  real h[COUNT];
  load_row<COUNT>(J + first, stride - first, h);
  UNROLLED for (int j = 0; j < COUNT; ++j) {
    if (first + j < nv) sums->add_entry(h[j], qacc[first + j], qacc_other[first + j]);
  }
  ROLLED for (int k = 0; k < first; k += 4) {
    const Vec4 four = *reinterpret_cast<const Vec4*>(Y + k);
    const real* L = qLD + first * nv + k;
    UNROLLED for (int e = 0; e < COUNT; ++e, L += nv) {
      if (first + e < nv) {
        h[e] = fma_(-L[1], four.y, fma_(-L[0], four.x, h[e]));
        h[e] = fma_(-L[3], four.w, fma_(-L[2], four.z, h[e]));
      }
    }
  }
  // each round turns the row by four entries, so that all indices of registers are constants
  ROLLED for (int k = first; k < end; k += 4) {
    const real* L = qLD + k * nv + k;
    UNROLLED for (int e = 0; e < COUNT; ++e, L += nv) {
      if (k + e < end) {
        UNROLLED for (int c = 0; c < 4 && c < e; ++c) h[e] = fma_(-L[c], h[c], h[e]);
        if (e < 4) {
          h[e] = divide_(h[e], L[e]);
          sums->add_whitened(h[e]);
        }
      }
    }
    *reinterpret_cast<Vec4*>(Y + k) = {h[0], h[1], h[2], h[3]};
    UNROLLED for (int j = 0; j < COUNT - 4; ++j) h[j] = h[j + 4];
  }
}

// As many columns as registers hold, and then four at a time: of 33 dofs, one is left. Each entry sees the same
// operations in the same order as over memory.
template <class Put>
DEVICE void whiten_in_registers(const Model& m, const Rows& rows, const real* qLD, const real* qacc,
                                const real* qacc_other, real* efc_Y, const Put& put) {
  const int nv = m.nv(), stride = m.nvp();
  LANE_FOR(r, rows.n) {
    const real* J = rows.J + size_t(r) * stride;
    real* Y = efc_Y + size_t(r) * stride;
    RowSums sums = without_entries(rows, r);
    whiten_columns<WHITENED>(J, Y, qLD, qacc, qacc_other, 0, nv, stride, &sums);
    ROLLED for (int first = WHITENED; first < nv; first += 4) {
      whiten_columns<4>(J, Y, qLD, qacc, qacc_other, first, nv, stride, &sums);
    }
    put(r, sums);
  }
  lane_sync();
}
#endif

// Write Y, and call put(r, its sums) for each row r.
template <class Put>
DEVICE void whiten_rows(const Model& m, const Rows& rows, const real* qLD, const real* qacc, const real* qacc_other,
                        real* efc_Y, const Put& put) {
#if SIMENGINE_GPU
  whiten_in_registers(m, rows, qLD, qacc, qacc_other, efc_Y, put);
#else
#ifdef MATRIX_VECTORS
  if (rows.n >= FEWEST_VECTOR_ROWS && fits_vectors(m.nv())) {
    whiten_in_vectors(m, rows, qLD, qacc, qacc_other, efc_Y, put);
    return;
  }
#endif
  whiten_over_memory(m, rows, qLD, qacc, qacc_other, efc_Y, put);
#endif
}
