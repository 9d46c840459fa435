// The Hessian of rows of every type, for a matrix with one row in a lane: M + J' W J, where W is diagonal except for
// the blocks of elliptic cones.
#pragma once

#if ONE_ROW_A_LANE
// What a row of J adds to J' W J: its weight; if the second derivatives mix it with others of its cone, the first of
// these and their number; or the dof of a row that has the entry 1 in the column of that dof, and no other.
struct WeightedRow {
  real weight;
  int cone, dim, dof;
};

DEVICE WeightedRow weighted_row(const Model& m, const Rows& rows, int r, const real* weight) {
  const int type = rows.type[r], id = rows.id[r];
  const bool cone = in_cone(type) && mixes_rows(m, rows, r, weight);
#ifdef UNIT_ISLAND
  const bool named = false;  // the row has the number of the dof in the world
#else
  const bool named = type == ROW_FRICTION_DOF;
#endif
  return {own_weight(rows, r, weight), cone ? rows.address[id] : -1, cone ? m.cand_rows()[rows.cand[id]] : 0,
          named ? id : -1};
}

// The weight of the row, if there is one, whose only entry is in the column of the lane's dof.
DEVICE real named_weight(const Model& m, const WeightedRow& own) {
  m.column[lane()] = 0;
  lane_sync();
  if (own.weight != 0 && own.dof >= 0) m.column[own.dof] = own.weight;
  lane_sync();
  const real extra = m.column[lane()];
  lane_sync();
  return extra;
}

// h += J' W J, where lane i has row i. Each lane looks at one row, and then all lanes go through the rows together that
// have a weight. The next of these is loaded before the entries of the current one are changed. Friction losses of dofs
// change the diagonal, many at once. Each entry sees the same operations as if the rows were added one by one.
#if HAS_CONES
DEVICE void reg_add_weighted(const Model& m, const Rows& rows, const real* weight, real* h) {
  const int i = lane(), n = m.nv(), stride = m.nvp();
  ROLLED for (int first = 0; first < rows.n; first += LANES) {
    WeightedRow own = {0, -1, 0, -1};
    if (first + i < rows.n) own = weighted_row(m, rows, first + i, weight);
    unsigned left = lane_ballot(own.weight != 0);
    const unsigned named = lane_ballot(own.weight != 0 && own.dof >= 0);
    const auto entry = [&](int from) { return i < stride ? rows.J[(first + from) * stride + i] : R(0.0); };
    real next = left ? entry(lowest_bit(left)) : R(0.0);
    ROLLED while (left) {
      const int from = lowest_bit(left), r = first + from;
      if (named >> from & 1u) {
        const real extra = named_weight(m, own);
#pragma unroll
        for (int j = 0; j < LANES; ++j) h[j] += i == j ? extra : R(0.0);
        left &= ~named;
        if (left) next = entry(lowest_bit(left));
        continue;
      }
      const real v = next;
      left &= left - 1;
      if (left) next = entry(lowest_bit(left));
      const int cone = lane_get_int(own.cone, from);
      real c = lane_get(own.weight, from) * v;
      if (cone >= 0) {
        const int dim = lane_get_int(own.dim, from);
        c = 0;
        const real *w = weight + MAX_CONE_ROWS * r, *column = rows.J + cone * stride + (i < stride ? i : 0);
        UNROLLED for (int k = 0; k < MAX_CONE_ROWS; ++k) {
          if (k < dim) c = fma_(w[k], column[k * stride], c);
        }
        c = i < stride ? c : R(0.0);
      }
#pragma unroll
      for (int j = 0; j < LANES; j += 4) {
        if (j < n) {
          const Vec4 four = broadcast4(rows.J + r * stride + j);
          h[j] = fma_(c, four.x, h[j]);
          h[j + 1] = fma_(c, four.y, h[j + 1]);
          h[j + 2] = fma_(c, four.z, h[j + 2]);
          h[j + 3] = fma_(c, four.w, h[j + 3]);
        }
      }
    }
  }
}
#else
// Two rows at once, so that their loads overlap. Behind the last row, zero times a row is added.
DEVICE void reg_add_weighted(const Model& m, const Rows& rows, const real* weight, real* h) {
  const int i = lane(), n = m.nv(), stride = m.nvp();
  ROLLED for (int first = 0; first < rows.n; first += LANES) {
    WeightedRow own = {0, -1, 0, -1};
    if (first + i < rows.n) own = weighted_row(m, rows, first + i, weight);
    unsigned left = lane_ballot(own.weight != 0);
    const unsigned named = lane_ballot(own.weight != 0 && own.dof >= 0);
    const auto entry = [&](int r) { return i < stride ? weight[r] * rows.J[r * stride + i] : R(0.0); };
    ROLLED while (left) {
      const int r = first + lowest_bit(left);
      if (named >> (r - first) & 1u) {
        const real extra = named_weight(m, own);
#pragma unroll
        for (int j = 0; j < LANES; ++j) h[j] += i == j ? extra : R(0.0);
        left &= ~named;
        continue;
      }
      left &= left - 1;
      const bool two = left && !(named >> lowest_bit(left) & 1u);
      const int other = two ? first + lowest_bit(left) : r;
      if (two) left &= left - 1;
      const real c = entry(r), d = two ? entry(other) : R(0.0);
#pragma unroll
      for (int j = 0; j < LANES; j += 4) {
        if (j < n) {
          const Vec4 row = broadcast4(rows.J + r * stride + j), second = broadcast4(rows.J + other * stride + j);
          h[j] = fma_(d, second.x, fma_(c, row.x, h[j]));
          h[j + 1] = fma_(d, second.y, fma_(c, row.y, h[j + 1]));
          h[j + 2] = fma_(d, second.z, fma_(c, row.z, h[j + 2]));
          h[j + 3] = fma_(d, second.w, fma_(c, row.w, h[j + 3]));
        }
      }
    }
  }
}
#endif
#endif
