// Tests of bounds on the host. Candidate pairs of a span have one first geom and successive second geoms, so their
// bounds are the entries of vectors. A span is looked at only if its first geom is near the box around its second ones,
// which is found once for all spans with the same second geoms. Spheres and oriented boxes see the operations of
// spheres_apart and boxes_apart in the same order. Boxes along the axes of the world are larger than the geoms by more
// than rounding errors, and the margin of two boxes by BEYOND_AXES, so that no contact is lost.
#pragma once

// The distance of two boxes that are apart is at most so many times what their best axis says, by which they have
// contacts. The normals of their difference at its nearest corner are spanned by three such axes, at worst orthogonal
// ones, of which one is within arccos(1 / sqrt(3)) of the direction to that corner.
#define BEYOND_AXES R(1.7320508075688774)

#ifdef MATRIX_VECTORS
#define SPANS
#ifndef MOST_SPHERES
#define MOST_SPHERES 512  // geoms whose bounds are copied; pairs of models with more are tested one by one
#endif
#ifndef MOST_RUNS
#define MOST_RUNS 512  // runs of successive geoms that get a box
#endif

// A box along the axes of the world.
struct Box {
  Four low, high;
};

// The box of a geom whose bounds are given: its bounding sphere, or its own box if that is tighter and worth it.
template <bool OWN_BOX>
DEVICE Box box_of(const Model& m, int g, const real* geom_xpos, const real* geom_xmat) {
  const real *pos = geom_xpos + 3 * g, *mat = geom_xmat + 9 * g, *own = m.geom_aabb() + 6 * g;
  if (m.geom_type()[g] == GEOM_PLANE) return {four(-REAL_MAX), four(REAL_MAX)};
  Four centre = {pos[0], pos[1], pos[2]}, half = four(m.geom_rbound()[g]);
  if (OWN_BOX) {
    const Four x = load_four(mat), y = load_four(mat + 3), z = load_last(mat + 6);
    half = Four{};
    for (int i = 0; i < 3; ++i) {
      const Four column = {x[i], y[i], z[i]};
      centre = four_fma(column, four(own[i]), centre);
      half = four_fma(four_abs(column), four(own[3 + i]), half);
    }
  }
  half += four(32 * REAL_EPS) * (four_abs(centre) + half);
  return {centre - half, centre + half};
}

DEVICE Box around(const Box& a, const Box& b) {
  return {a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}

// Whether two boxes are at most `reach` from each other along each axis.
DEVICE bool are_near(const Box& a, const Box& b, Four reach) {
  return !any_of_three((a.low > b.high + reach) | (b.low > a.high + reach));
}

// Bounds of all geoms, each coordinate by itself, with room for a vector behind the last, and boxes.
template <bool BOXES>
struct Bounds {
  static const int ROOM = MOST_SPHERES + VECTOR_WIDTH;
  REAL x[ROOM], y[ROOM], z[ROOM], radius[ROOM];
  REAL low[3][BOXES ? ROOM : 1], high[3][BOXES ? ROOM : 1];
  Box box[MOST_SPHERES + 1], run[MOST_RUNS + 1];

  Bounds(const Model& m, const real* geom_xpos, const real* geom_xmat) {
    const int ngeom = m.ngeom(), runs = m.nrun() <= MOST_RUNS ? m.nrun() : 0;
    const real* rbound = m.geom_rbound();
    for (int g = 0; g < ngeom; ++g) {
      x[g] = geom_xpos[3 * g];
      y[g] = geom_xpos[3 * g + 1];
      z[g] = geom_xpos[3 * g + 2];
      radius[g] = rbound[g];
      box[g] = box_of<BOXES>(m, g, geom_xpos, geom_xmat);
      for (int i = 0; i < 3 && BOXES; ++i) {
        low[i][g] = box[g].low[i];
        high[i][g] = box[g].high[i];
      }
    }
    const Lanes none = Lanes{};
    for (REAL* behind : {x, y, z, radius}) store_words(behind + ngeom, none, VECTOR_WIDTH);
    for (int i = 0; i < 3 && BOXES; ++i) {
      store_words(low[i] + ngeom, none, VECTOR_WIDTH);
      store_words(high[i] + ngeom, none, VECTOR_WIDTH);
    }
    for (int r = 0; r < runs; ++r) {
      const int first = m.run_geom()[2 * r], number = m.run_geom()[2 * r + 1];
      run[r] = box[first];
      for (int k = 1; k < number; ++k) run[r] = around(run[r], box[first + k]);
    }
  }
};

// The lowest `number` bits, at most one for each entry of a vector.
DEVICE unsigned first_bits(int number) { return (2u << ((number < VECTOR_WIDTH ? number : VECTOR_WIDTH) - 1)) - 1; }

// The spheres of VECTOR_WIDTH geoms that are not apart from that of g1, by bits; the first of these geoms is g2.
// `reach` is the margin plus the radius of g1, and `normal` is that of g1 if it is a plane, else null.
template <bool BOXES>
DEVICE unsigned spheres_near(const Bounds<BOXES>& s, int g1, int g2, real reach, const real* normal) {
  const Lanes x = load_words(s.x + g2, VECTOR_WIDTH) - s.x[g1], y = load_words(s.y + g2, VECTOR_WIDTH) - s.y[g1];
  const Lanes z = load_words(s.z + g2, VECTOR_WIDTH) - s.z[g1], most = reach + load_words(s.radius + g2, VECTOR_WIDTH);
  if (normal) return ~bits_of(vector_fma(z, every(normal[2]), vector_fma(y, every(normal[1]), x * normal[0])) > most);
  return ~bits_of(vector_fma(z, z, vector_fma(y, y, x * x)) > most * most);
}

// The same for boxes along the axes of the world. `reach` is the margin.
DEVICE unsigned boxes_near(const Bounds<true>& s, int g1, int g2, real reach) {
  Truths apart = Truths{};
  for (int i = 0; i < 3; ++i) {
    apart |= (load_words(s.low[i] + g2, VECTOR_WIDTH) > s.high[i][g1] + reach) |
             (load_words(s.high[i] + g2, VECTOR_WIDTH) < s.low[i][g1] - reach);
  }
  return ~bits_of(apart);
}
DEVICE unsigned boxes_near(const Bounds<false>& s, int g1, int g2, real reach) { return ~0u; }

// The same as boxes_apart, with the axes of a box as the entries of a vector.
DEVICE bool boxes_apart_in_vectors(const Model& m, int c, const real* geom_xpos, const real* geom_xmat) {
  const int g1 = m.cand_geom1()[c], g2 = m.cand_geom2()[c];
  if (m.geom_type()[g1] == GEOM_PLANE) return false;
  const real *box1 = m.geom_aabb() + 6 * g1, *box2 = m.geom_aabb() + 6 * g2;
  const real *mat1 = geom_xmat + 9 * g1, *mat2 = geom_xmat + 9 * g2;
  real between[3];
  for (int i = 0; i < 3; ++i) {
    between[i] = geom_xpos[3 * g2 + i] + dot3(mat2 + 3 * i, box2) - (geom_xpos[3 * g1 + i] + dot3(mat1 + 3 * i, box1));
  }
  const Four margin = four(detection_margin(m, c));
  const Four rows1[3] = {load_four(mat1), load_four(mat1 + 3), load_last(mat1 + 6)};
  const Four rows2[3] = {load_four(mat2), load_four(mat2 + 3), load_last(mat2 + 6)};
  Four reach1 = margin + load_last(box1 + 3), reach2 = margin + load_last(box2 + 3);
  for (int k = 0; k < 3; ++k) {
    const Four turn1 = combined(rows1, mat2[k], mat2[3 + k], mat2[6 + k]);
    const Four turn2 = combined(rows2, mat1[k], mat1[3 + k], mat1[6 + k]);
    reach1 = four_fma(four_abs(turn1), four(box2[3 + k]), reach1);
    reach2 = four_fma(four_abs(turn2), four(box1[3 + k]), reach2);
  }
  const Four along1 = four_abs(combined(rows1, between[0], between[1], between[2]));
  const Four along2 = four_abs(combined(rows2, between[0], between[1], between[2]));
  return any_of_three((along1 > reach1) | (along2 > reach2));
}

// Numbers of candidate pairs that wait for the next test, in order.
#ifndef MOST_WAITING
#define MOST_WAITING 512
#endif
struct WaitingPairs {
  int cand[MOST_WAITING + VECTOR_WIDTH], number;

  // Append first + k for each bit k of `near`. Branches on few of many bits would often be predicted wrongly.
  DEVICE_METHOD void append(int first, unsigned near) {
#if !defined(__clang__) && VECTOR_BYTES == 64 && REAL_IS_FLOAT
    const Truths chosen = __builtin_ia32_compresssi512_mask(first + places(), Truths{}, near);
    __builtin_memcpy(cand + number, &chosen, sizeof(chosen));
    number += __builtin_popcount(near);
#else
    for (; near; near &= near - 1) cand[number++] = first + __builtin_ctz(near);
#endif
  }
};

// Call take.list(c) for the pairs that wait, or for those whose boxes are not apart if the caller of each_near wants
// that; see counting.cuh.
template <typename Take>
DEVICE void list_waiting(const Model& m, const real* geom_xpos, const real* geom_xmat, WaitingPairs& waiting,
                         Take& take) {
  int left = waiting.number;
  if (Take::TESTS_BOXES) {
    left = 0;
    for (int i = 0; i < waiting.number; ++i) {
      const int c = waiting.cand[i];
      waiting.cand[left] = c;
      left += !boxes_apart_in_vectors(m, c, geom_xpos, geom_xmat);
    }
  }
  for (int i = 0; i < left; ++i) take.list(waiting.cand[i]);
  waiting.number = 0;
}

// The same as each_near, in order: for each candidate pair whose bounding spheres overlap, and whose boxes do too if
// the caller wants that.
template <typename Take>
DEVICE void each_near_of_spans(const Model& m, const real* geom_xpos, const real* geom_xmat, Take& take) {
  const Bounds<Take::TESTS_BOXES> bounds(m, geom_xpos, geom_xmat);
  const int spans = m.nspan();
  const int *adr = m.span_adr(), *geom1 = m.cand_geom1(), *geom2 = m.cand_geom2(), *type = m.geom_type();
  const int* run = m.nrun() <= MOST_RUNS ? m.span_run() : nullptr;
  const real *margin = m.cand_margin(), *gap = m.cand_gap();
  WaitingPairs waiting;
  waiting.number = 0;
  for (int s = 0; s < spans; ++s) {
    const int first = adr[s], end = adr[s + 1], g1 = geom1[first], shift = geom2[first] - first;
    const real listed = margin[first] + gap[first];
    const real most = max_(listed, R(0.0)) * (type[g1] == GEOM_BOX ? BEYOND_AXES : R(1.0));
    if (run && !are_near(bounds.box[g1], bounds.run[run[s]], four(most))) continue;
    const real reach = listed + bounds.radius[g1];
    const bool plane = type[g1] == GEOM_PLANE;
    real normal[3];
    if (plane) mat_col(normal, geom_xmat + 9 * g1, 2);
    for (int c = first; c < end; c += VECTOR_WIDTH) {
      unsigned near = spheres_near(bounds, g1, c + shift, reach, plane ? normal : nullptr) & first_bits(end - c);
      if (near) near &= boxes_near(bounds, g1, c + shift, most);
      if (near) waiting.append(c, near);
      if (waiting.number > MOST_WAITING - VECTOR_WIDTH) list_waiting(m, geom_xpos, geom_xmat, waiting, take);
    }
  }
  list_waiting(m, geom_xpos, geom_xmat, waiting, take);
}
#endif
