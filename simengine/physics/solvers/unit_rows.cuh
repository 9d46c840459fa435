// Rows with one entry, 1 or -1: those of friction losses and limits of single joints, which follow one another and are
// most rows of many robots. On the host, dense solvers do not multiply their zeros.
#pragma once

#ifdef MATRIX_VECTORS
// The rows from `begin` to `end`, and the column of the entry of each.
struct UnitRows {
  int begin, end;
  short column[MOST_VECTORS * VECTOR_WIDTH];

  DEVICE_METHOD real entry(const Rows& rows, int stride, int r) const {
    return rows.J[size_t(r) * stride + column[r - begin]];
  }
};

DEVICE bool of_one_joint(const Rows& rows, int r) {
  return rows.type[r] == ROW_FRICTION_DOF || rows.type[r] == ROW_LIMIT_JOINT;
}

// The column of the only entry of a row of n words, or -1 if there are others.
DEVICE int only_column(const real* row, int n) {
  int found = -1;
  for (int v = 0; v < n; v += VECTOR_WIDTH) {
    const unsigned there = bits_of(load_words(row + v, n - v) != Lanes{});
    if (!there) continue;
    if (found >= 0 || (there & (there - 1))) return -1;
    found = v + __builtin_ctz(there);
  }
  return found;
}

DEVICE UnitRows unit_rows(const Rows& rows, int n, int stride) {
  UnitRows unit;
  int r = 0;
  while (r < rows.n && !of_one_joint(rows, r)) ++r;
  unit.begin = r;
  for (; r < rows.n && r - unit.begin < MOST_VECTORS * VECTOR_WIDTH && of_one_joint(rows, r); ++r) {
    const int column = only_column(rows.J + size_t(r) * stride, n);
    if (column < 0 || abs_(rows.J[size_t(r) * stride + column]) != 1) break;
    unit.column[r - unit.begin] = column;
  }
  unit.end = r;
  return unit;
}

// rows_times, and add_rows_in_vectors, with the rows before, among and behind the unit rows one after another.
DEVICE void times_beside_units(const Rows& rows, const UnitRows& unit, int stride, const real* x, real* out) {
  rows_times(unit.begin, rows.J, stride, x, out);
  for (int r = unit.begin; r < unit.end; ++r) {
    out[r] = fma_(unit.entry(rows, stride, r), x[unit.column[r - unit.begin]], R(0.0));
  }
  rows_times(rows.n - unit.end, rows.J + size_t(unit.end) * stride, stride, x, out + unit.end);
}

DEVICE void add_beside_units(const Rows& rows, const UnitRows& unit, int stride, const real* f, const real* y,
                             real* out, int n) {
  add_rows_in_vectors(unit.begin, rows.J, stride, f, y, out, n);
  for (int r = unit.begin; r < unit.end; ++r) {
    real* entry = out + unit.column[r - unit.begin];
    *entry = fma_(unit.entry(rows, stride, r), f[r], *entry);
  }
  add_rows_in_vectors(rows.n - unit.end, rows.J + size_t(unit.end) * stride, stride, f + unit.end, out, out, n);
}
#endif
