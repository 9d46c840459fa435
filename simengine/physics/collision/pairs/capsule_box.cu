// Capsule and box: contact of the sphere at the point of the capsule's segment nearest to the box, and of a second
// sphere where the capsule lies along a face or an edge. All in the box's frame; a point of the segment is middle + x
// half with x in [-1, 1].

// The points at which the segment and the box are nearest to each other.
struct Nearest {
  real square;  // of the distance
  real x;       // point of the segment
  real along;   // point of the edge in [-1, 1]
  int face;     // axis of the face that an end is over, 3 for an end inside the box, -1 for an edge or corner
  int edge;     // the edge's axis
  int corner;   // signs of the edge's or corner's coordinates, as bits
  bool inner;   // is the point inside the edge, not at a corner?
};

// Squared sine of the angle below which a segment counts as parallel to an edge, because of rounding.
#define ALONG_EDGE (64 * REAL_EPS * REAL_EPS)

// (1) an end of the segment, over a face or inside the box.
DEVICE void nearest_end(const real* middle, const real* half, const real* size, Nearest* best) {
  for (int end = -1; end <= 1; end += 2) {
    int outside = 0, face = 3;
    real square = 0;
    for (int i = 0; i < 3; ++i) {
      const real x = fma_((real)end, half[i], middle[i]), beyond = x - clamp_(x, -size[i], size[i]);
      if (beyond != 0) {
        ++outside;
        face = i;
        square = beyond * beyond;
      }
    }
    if (outside < 2 && square < best->square) {
      best->square = square;
      best->x = end;
      best->face = face;
    }
  }
}

// Whether the nearest point so far is an end of an edge, near whose point x1 it is as near to the segment by rounding.
// The point inside is nearer, which single precision does not show if the two are close together.
DEVICE bool is_end_of(const Nearest& best, int axis, int corner, real x1, real square, real equal) {
  if (REAL_EPS < R(1e-10) || best.face >= 0 || best.inner || (best.corner & ~(1 << axis)) != corner) return false;
  return abs_(x1) < 1 - 16 * REAL_EPS && square < best.square + equal;
}

// (2) the twelve edges: nearest points of two lines, projected along the edge, then clamped one after the other.
DEVICE void nearest_edge(const real* middle, const real* half, const real* size, Nearest* best) {
  for (int axis = 0; axis < 3; ++axis) {
    const int b = (axis + 1) % 3, c = (axis + 2) % 3;
    const real squared = dot3(half, half), across = fma_(half[b], half[b], half[c] * half[c]), edge = size[axis];
    if (edge * edge * across < max_(MJMINVAL, ALONG_EDGE * edge * edge * squared)) continue;
    for (int corner = 0; corner < 8; ++corner) {
      if (corner >> axis & 1) continue;
      real offset[3];
      for (int i = 0; i < 3; ++i) {
        const real side = i == axis ? R(0.0) : corner >> i & 1 ? size[i] : -size[i];
        offset[i] = side - middle[i];
      }
      // the nearest point counts as a corner once the edge's parameter was clamped, even if its final value is inside
      real x2 = fma_(offset[b], half[b], offset[c] * half[c]) / across, x1 = fma_(x2, half[axis], -offset[axis]) / edge;
      int end = 0;
      if (x1 > 1 || x1 < -1) {
        end = x1 > 1 ? 1 : -1;
        x1 = end;
        x2 = fma_(x1 * edge, half[axis], dot3(half, offset)) / squared;
      }
      if (x2 > 1 || x2 < -1) {
        x2 = clamp_(x2, R(-1.0), R(1.0));
        x1 = fma_(x2, half[axis], -offset[axis]) / edge;
        if (x1 > 1 || x1 < -1) end = x1 > 1 ? 1 : -1;
        x1 = clamp_(x1, R(-1.0), R(1.0));
      }
      for (int i = 0; i < 3; ++i) offset[i] = fma_(-x2, half[i], offset[i]);
      offset[axis] = fma_(x1, edge, offset[axis]);
      const real square = dot3(offset, offset), equal = max_(MJMINVAL, 16 * REAL_EPS * square);
      const bool between = end == 0 && is_end_of(*best, axis, corner, x1, square, equal);
      if (between || square < best->square - equal) {
        *best = {square, x2, x1, -1, axis, corner | (end > 0) << axis, end == 0};
      }
    }
  }
}

// (3) distance along the segment from its nearest point to the second sphere. There is one rule each for a face, an
// edge and a corner. The distance may be zero; then MuJoCo lists the same contact twice.
#define NO_SECOND R(4.0)

DEVICE real beyond_face(const Nearest& best, const real* middle, const real* half, const real* size) {
  // from the end over the face to the point where the segment leaves the face, or to its other end
  if (best.face == 3) return NO_SECOND;
  real step = 2;
  for (int i = 0; i < 3; ++i) {
    if (i == best.face) continue;
    const real start = fma_(best.x, half[i], middle[i]), slope = -best.x * half[i];
    for (int side = -1; side <= 1; side += 2) {
      const real leave = (side * size[i] - start) / slope;
      if (leave > 0 && leave < step) step = leave;
    }
  }
  return -best.x * step;
}

DEVICE real beyond_edge(const Nearest& best, int inward, const real* half, const real* size) {
  // only if the segment goes inward along one of the axes perpendicular to the edge and outward along the other: over
  // the face along which it lies, as far as that face and the edge reach
  const int a = best.edge, b = (a + 1) % 3, c = 3 - a - b;
  if ((inward >> b & 1) == (inward >> c & 1)) return NO_SECOND;
  const bool first = abs_(half[b]) > abs_(half[c]) || (abs_(half[b]) == abs_(half[c]) && b > c);
  const int over = first ? b : c;
  const real sign = inward >> over & 1 ? R(1.0) : R(-1.0);
  real step = min_(1 - sign * best.x, 2 * size[over] / abs_(half[over]));
  const bool up = (half[a] > 0) == (sign > 0);
  const real rest = up ? 1 - best.along : 1 + best.along;
  step = min_(step, size[a] * rest / abs_(half[a]));
  return sign * step;
}

DEVICE real beyond_corner(const Nearest& best, int inward, const real* half, const real* size) {
  // the segment goes one way along one axis and the other way along the two others: along the edge of that axis, or
  // over the face of the two others
  if (inward == 0 || inward == 7) return NO_SECOND;
  const bool single = inward == 1 || inward == 2 || inward == 4;
  const int odd = single ? inward : 7 - inward, a = odd >> 1, b = (a + 1) % 3, c = (a + 2) % 3;
  const real sign = single ? R(1.0) : R(-1.0);
  if (half[a] * half[a] > R(0.5) * dot3(half, half)) {
    return sign * min_(1 - sign * best.x, 2 * size[a] / abs_(half[a]));
  }
  return -sign * min_(1 + sign * best.x, 2 * min_(size[b] / abs_(half[b]), size[c] / abs_(half[c])));
}

DEVICE int collide_capsule_box(const Pair& p, real margin, Contact* out) {
  real axis[3], half[3], middle[3], offset[3];
  mat_col(axis, p.mat1, 2);
  for (int i = 0; i < 3; ++i) offset[i] = p.pos1[i] - p.pos2[i];
  for (int i = 0; i < 3; ++i) {
    real side[3];
    mat_col(side, p.mat2, i);
    middle[i] = dot3(side, offset);
    half[i] = p.size1[1] * dot3(side, axis);
    // a face of the box separates most pairs whose bounding spheres overlap
    if (abs_(middle[i]) - abs_(half[i]) - p.size2[i] > margin + p.size1[0]) return 0;
  }
  Nearest best = {REAL_MAX, 0, 0, 3, 0, 0, false};
  nearest_end(middle, half, p.size2, &best);
  nearest_edge(middle, half, p.size2, &best);
  int inward = best.corner;
  for (int i = 0; i < 3; ++i) inward ^= (half[i] > 0) << i;
  const real step = best.face >= 0 ? beyond_face(best, middle, half, p.size2)
                    : best.inner   ? beyond_edge(best, inward, half, p.size2)
                                   : beyond_corner(best, inward, half, p.size2);
  // (4) the spheres
  int number = 0;
  for (int second = 0; second < (step == NO_SECOND ? 1 : 2); ++second) {
    const real x = p.size1[1] * (second ? best.x + step : best.x);
    real centre[3];
    for (int i = 0; i < 3; ++i) centre[i] = fma_(x, axis[i], p.pos1[i]);
    number += sphere_against_box(centre, p.size1[0], p, margin, out + number);
  }
  return number;
}

DEVICE void capsule_box(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                        const int* near_adr, const int* pair_tally, real* contact_dist, real* contact_pos,
                        real* contact_frame, int* contact_cand) {
  fill_contacts<collide_capsule_box, MAX_CAPSULE_BOX>(m, TYPE_CAPSULE_BOX, geom_xpos, geom_xmat, near_cand, near_adr,
                                                      pair_tally, contact_dist, contact_pos, contact_frame,
                                                      contact_cand);
}
