// The cost of rows outside elliptic cones (row_law.cuh), as many rows at a time as a vector has entries. Each entry
// sees the operations of row_law and line_law, and sums over rows are in the order of the rows.
#pragma once

#if defined(MATRIX_VECTORS) && REAL_IS_FLOAT
#define PLAIN_ROWS

// Whether no row can be part of a cone.
DEVICE bool are_plain(const Model& m) { return m.opt_cone() != CONE_ELLIPTIC; }

// Up to VECTOR_WIDTH rows from row `first` on.
struct PlainRows {
  int number;
  Lanes D, loss;
  Truths friction, push;  // neither for equalities

  PlainRows(const Rows& rows, int first) {
    number = rows.n - first < VECTOR_WIDTH ? rows.n - first : VECTOR_WIDTH;
    Truths type = {};
    __builtin_memcpy(&type, rows.type + first, number * sizeof(int));
    D = load_words(rows.D + first, number);
    loss = load_words(rows.frictionloss + first, number);
    push = type > Truths{} + ROW_FRICTION_TENDON;
    friction = (type != Truths{} + ROW_EQUALITY) & ~push;
  }

  // Where the cost is quadratic, and where it is linear, at residuals x.
  Truths quadratic(Lanes x) const {
    const Lanes pull = D * x, size = (Lanes)((Truths)pull & ~(Truths)-Lanes{});
    return (push & (x < Lanes{})) | (friction & (size < loss)) | ~(push | friction);
  }
  Truths linear(Truths quadratic) const { return friction & ~quadratic; }
};

DEVICE Lanes size_of(Lanes x) { return (Lanes)((Truths)x & ~(Truths)-Lanes{}); }
DEVICE Lanes where(Truths condition, Lanes x) { return (Lanes)((Truths)x & condition); }

// rows_cost
DEVICE_CALL real plain_rows_cost(const Rows& rows, const real* jar, real* force, real* weight) {
  real cost = 0;
  for (int first = 0; first < rows.n; first += VECTOR_WIDTH) {
    const PlainRows own(rows, first);
    const Lanes x = load_words(jar + first, own.number);
    const Truths quadratic = own.quadratic(x), linear = own.linear(quadratic);
    const Lanes straight = x < Lanes{} ? own.loss : -own.loss;
    store_words(force + first, where(quadratic, -(own.D * x)) + where(linear, straight), own.number);
    const Lanes half = every(R(0.5)), bowl = half * own.D * x * x;
    const Lanes cone = own.loss * (size_of(x) - half * (own.loss / own.D));
    const Lanes of = where(quadratic, bowl) + where(linear, cone), curve = where(quadratic, own.D);
    for (int i = 0; i < own.number; ++i) cost += of[i];
    for (int i = 0; weight && i < own.number; ++i) weight[MAX_CONE_ROWS * (first + i)] = curve[i];
  }
  return cost;
}

// is_full_step
DEVICE_CALL bool plain_full_step(const Rows& rows, const real* jar, const real* jv) {
  Truths bends = {};
  for (int first = 0; first < rows.n; first += VECTOR_WIDTH) {
    const PlainRows own(rows, first);
    const Lanes x = load_words(jar + first, own.number), end = x + load_words(jv + first, own.number);
    const Truths before = own.quadratic(x), after = own.quadratic(end);
    bends |= (before ^ after) | (own.linear(before) & ((x < Lanes{}) ^ (end < Lanes{})));
  }
  return !has_bits(bends);
}

// The sums of line_law over all rows at jar + alpha jv.
DEVICE_CALL LineLaw plain_line_law(const Rows& rows, const real* jar, const real* jv, real alpha) {
  LineLaw sum = {0, 0, 0};
  for (int first = 0; first < rows.n; first += VECTOR_WIDTH) {
    const PlainRows own(rows, first);
    const Lanes from = load_words(jar + first, own.number), along = load_words(jv + first, own.number);
    const Lanes x = vector_fma(every(alpha), along, from), rate = own.D * along;
    const Truths quadratic = own.quadratic(x), linear = own.linear(quadratic);
    const Lanes pull = where(linear, x < Lanes{} ? -along * own.loss : along * own.loss);
    const Lanes slope = where(quadratic, rate * x) + pull, curve = where(quadratic, rate * along);
    const Lanes size = where(quadratic, size_of(rate) * (size_of(x) + size_of(from))) + size_of(pull);
    for (int i = 0; i < own.number; ++i) {
      sum.first += slope[i];
      sum.second += curve[i];
      sum.size += size[i];
    }
  }
  return sum;
}
#endif
