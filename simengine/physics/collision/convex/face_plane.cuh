// What lies over a face of a solid: its plane, and the sides between which a point is over it.
#pragma once

#define THERE_AND_BACK 8  // most corners of a clipped edge: each end twice, and more through rounding
#define ALONG_SIDE (8 * REAL_EPS)  // relative to the scale: a point this far beyond a side of a face lies along it

// Features that lie flat on each other: two faces, or an edge and a face.
struct Lying {
  int first, second;
};

// The plane of a face as a frame for heights above it and coordinates in it.
struct Plane {
  real origin[3], x[3], y[3], normal[3];
};

DEVICE_CALL Plane plane_of(const Solid& s, int face) {
  Plane p;
  face_normal_of(s, face, p.normal);
  corner_of(s, s.model->face_vert()[s.model->face_adr()[face + 1] - 1], p.origin);
  real frame[9];
  for (int i = 0; i < 3; ++i) {
    frame[i] = p.normal[i];
    frame[3 + i] = 0;
  }
  make_frame(frame);
  for (int i = 0; i < 3; ++i) {
    p.x[i] = frame[3 + i];
    p.y[i] = frame[6 + i];
  }
  return p;
}

DEVICE Spot above(const Plane& p, const real* point) {
  real offset[3];
  for (int i = 0; i < 3; ++i) offset[i] = point[i] - p.origin[i];
  return {dot3(p.x, offset), dot3(p.y, offset), dot3(p.normal, offset)};
}

// Corner k of a face as seen from a plane; MuJoCo's order around a face is clockwise. The corner after the last is the
// first.
DEVICE_CALL Spot corner_above(const Solid& s, int face, int k, const Plane& p) {
  const int begin = s.model->face_adr()[face], sides = s.model->face_adr()[face + 1] - begin;
  real point[3];
  corner_of(s, s.model->face_vert()[begin + (k < sides ? sides - 1 - k : sides - 1)], point);
  return above(p, point);
}

// The side of a face between two corners that follow each other.
DEVICE HalfPlane side_of(const Spot& from, const Spot& to, real slack) {
  const real nx = from.y - to.y, ny = to.x - from.x;
  return {nx, ny, fma_(nx, from.x, ny * from.y), slack * (abs_(nx) + abs_(ny))};
}
