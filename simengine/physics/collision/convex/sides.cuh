// Flat sides that need no table of faces: those of a box, and the caps of a cylinder.
#pragma once

// A face of a shape, in its frame.
struct Face {
  int number;               // among those of the shape; -1 if there is none
  real normal[3], dist;     // unit normal, outward; distance of the plane from the centre [m]
  int corner[3];            // vertices of the face, for flat parts
};

DEVICE bool is_box(const Shape& s) { return s.box[0] > 0 && !s.hull.nvert; }
DEVICE bool has_caps(const Shape& s) { return s.round[0] > 0 && !(s.round[2] > 0) && s.box[2] > 0; }

// Whether a point is nearer to a cap's plane than to the side, or farther beyond it.
DEVICE bool is_at_cap(const Shape& s, const real* at) {
  const real beyond = s.round[0] + abs_(at[2]) - s.box[2];
  return beyond >= 0 && at[0] * at[0] + at[1] * at[1] <= beyond * beyond;
}

// The side of a box, or the cap of a cylinder, whose plane is nearest to a point inside, or the farthest below one
// outside.
DEVICE Face side_at(const Shape& s, const real* at) {
  Face f = {-1};
  const bool box = is_box(s);
  if (!box && !is_at_cap(s, at)) return f;
  int axis = 2;
  real height = at[2], beyond = abs_(at[2]) - s.box[2];
  f.dist = s.box[2];
  for (int i = 0; i < 2; ++i) {  // without an index that is known at run time only, arrays can be in registers
    const bool farther = box && abs_(at[i]) - s.box[i] > beyond;
    axis = farther ? i : axis;
    height = farther ? at[i] : height;
    beyond = farther ? abs_(at[i]) - s.box[i] : beyond;
    f.dist = farther ? s.box[i] : f.dist;
  }
  const int upper = height >= 0;
  f.number = 2 * axis + upper;
  for (int i = 0; i < 3; ++i) f.normal[i] = i != axis ? R(0.0) : upper ? R(1.0) : R(-1.0);
  for (int k = 0; k < 3; ++k) {
    f.corner[k] = upper << axis | (k == 1) << (axis + 1) % 3 | (k == 2) << (axis + 2) % 3;
  }
  return f;
}

// Whether a point beyond the plane of a side is over the side.
DEVICE bool is_over_side(const Shape& s, const Face& f, const real* at) {
  if (!is_box(s)) return at[0] * at[0] + at[1] * at[1] <= s.round[0] * s.round[0];
  bool over = true;
  for (int i = 0; i < 3; ++i) over &= i == f.number >> 1 || abs_(at[i]) <= s.box[i];
  return over;
}

// Whether a contact is at the only point at which a shape touches a face, or its others are looked for.
DEVICE bool may_rest(const Difference& d, const Shape& other) { return d.several || is_strict(other); }

// The nearest points of the cores, or the ends of the way out of each other, where one rests on a face.
DEVICE void resting_points(const Simplex& s, const real* normal, real* p1, real* p2) {
  const real gap = s.weight[0];
  for (int i = 0; i < 3; ++i) {
    p1[i] = s.face == 1 ? fma_(-gap, normal[i], s.w[0][i]) : s.w[0][i];
    p2[i] = s.face == 1 ? s.w[0][i] : fma_(gap, normal[i], s.w[0][i]);
  }
}
