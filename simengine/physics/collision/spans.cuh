// Tests of bounds on the host. Candidate pairs of a span have one first geom and successive second geoms, so their
// spheres are the entries of vectors. Each pair sees the operations of spheres_apart and boxes_apart in the same order.
#pragma once

#ifdef MATRIX_VECTORS
#define SPANS
#ifndef MOST_SPHERES
#define MOST_SPHERES 512  // geoms whose spheres are copied; pairs of models with more are tested one by one
#endif

// Centres and radii of the bounding spheres of all geoms, each coordinate by itself, with room for a vector behind the
// last.
struct Spheres {
  REAL x[MOST_SPHERES + VECTOR_WIDTH], y[MOST_SPHERES + VECTOR_WIDTH], z[MOST_SPHERES + VECTOR_WIDTH];
  REAL radius[MOST_SPHERES + VECTOR_WIDTH];

  Spheres(const Model& m, const real* geom_xpos) {
    const int ngeom = m.ngeom();
    const real* rbound = m.geom_rbound();
    for (int g = 0; g < ngeom; ++g) {
      x[g] = geom_xpos[3 * g];
      y[g] = geom_xpos[3 * g + 1];
      z[g] = geom_xpos[3 * g + 2];
      radius[g] = rbound[g];
    }
    const Lanes none = Lanes{};
    store_words(x + ngeom, none, VECTOR_WIDTH);
    store_words(y + ngeom, none, VECTOR_WIDTH);
    store_words(z + ngeom, none, VECTOR_WIDTH);
    store_words(radius + ngeom, none, VECTOR_WIDTH);
  }
};

// The lowest `number` bits, at most one for each entry of a vector.
DEVICE unsigned first_bits(int number) { return (2u << ((number < VECTOR_WIDTH ? number : VECTOR_WIDTH) - 1)) - 1; }

// The spheres of VECTOR_WIDTH geoms that are not apart from that of g1, by bits; the first of these geoms is g2.
// `reach` is the margin plus the radius of g1, and `normal` is that of g1 if it is a plane, else null.
DEVICE unsigned spheres_near(const Spheres& s, int g1, int g2, real reach, const real* normal) {
  const Lanes x = load_words(s.x + g2, VECTOR_WIDTH) - s.x[g1], y = load_words(s.y + g2, VECTOR_WIDTH) - s.y[g1];
  const Lanes z = load_words(s.z + g2, VECTOR_WIDTH) - s.z[g1], most = reach + load_words(s.radius + g2, VECTOR_WIDTH);
  if (normal) return ~bits_of(vector_fma(z, every(normal[2]), vector_fma(y, every(normal[1]), x * normal[0])) > most);
  return ~bits_of(vector_fma(z, z, vector_fma(y, y, x * x)) > most * most);
}

// The combination of three vectors with these weights.
DEVICE Four combined(const Four* x, REAL a, REAL b, REAL c) {
  return four_fma(x[2], four(c), four_fma(x[1], four(b), x[0] * a));
}

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

// The same as each_near: for each candidate pair whose bounding spheres overlap, in order.
template <typename Take>
DEVICE void each_near_of_spans(const Model& m, const real* geom_xpos, const real* geom_xmat, Take& take) {
  const Spheres spheres(m, geom_xpos);
  const int spans = m.nspan();
  const int *adr = m.span_adr(), *geom1 = m.cand_geom1(), *geom2 = m.cand_geom2(), *type = m.geom_type();
  const real *margin = m.cand_margin(), *gap = m.cand_gap();
  WaitingPairs waiting;
  waiting.number = 0;
  for (int s = 0; s < spans; ++s) {
    const int first = adr[s], end = adr[s + 1], g1 = geom1[first], shift = geom2[first] - first;
    const real reach = margin[first] + gap[first] + spheres.radius[g1];
    const bool plane = type[g1] == GEOM_PLANE;
    real normal[3];
    if (plane) mat_col(normal, geom_xmat + 9 * g1, 2);
    for (int c = first; c < end; c += VECTOR_WIDTH) {
      const unsigned near = spheres_near(spheres, g1, c + shift, reach, plane ? normal : nullptr);
      waiting.append(c, near & first_bits(end - c));
      if (waiting.number > MOST_WAITING - VECTOR_WIDTH) list_waiting(m, geom_xpos, geom_xmat, waiting, take);
    }
  }
  list_waiting(m, geom_xpos, geom_xmat, waiting, take);
}
#endif
