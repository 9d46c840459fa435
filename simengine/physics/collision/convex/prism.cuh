// The upper face of a prism of a height field, with which a search on the host begins. A geom on a field mostly touches
// such a face, or is above it. The corners of the face, less the geom's point farthest against its normal, are support
// points of the difference along the normal: they tell at once whether the face's plane separates the two, and if they
// are nearest to the origin, the search ends where it began.
#pragma once

#if !SIMENGINE_GPU
struct UpperFace {
  real normal[3], w[3][3];  // the normal in the world's frame, and the support points along it
  int other;                // the vertex of the geom's hull, -1 if it has none
};

// Whether a search begins with the upper face of a prism, which is the first shape.
DEVICE bool begins_with_face(const Difference& d) { return d.a.hull.top; }

DEVICE UpperFace upper_face(const Difference& d) {
  UpperFace face;
  real below[3];
  to_world(face.normal, d.a.mat, d.a.hull.top);
  const real down[3] = {-face.normal[0], -face.normal[1], -face.normal[2]};
  support(d.b, down, below);
  for (int k = 0; k < 3; ++k) {
    to_world(face.w[k], d.a.mat, d.a.hull.vert + 9 + 3 * k);
    for (int i = 0; i < 3; ++i) face.w[k][i] += d.a.pos[i] - below[i];
  }
  face.other = d.b.hull.last;
  return face;
}

// Let corner k of a simplex, which has the fields of Simplex or Corners, be support point `of` of the face.
template <typename Points>
DEVICE void put_upper_corner(Points& s, int k, const UpperFace& face, int of) {
  for (int i = 0; i < 3; ++i) {
    s.w[k][i] = face.w[of][i];
    s.dir[k][i] = face.normal[i];
  }
  s.vertex[k][0] = 3 + of;
  s.vertex[k][1] = face.other;
}

// Let a simplex have the corners of the face.
template <typename Points>
DEVICE void put_upper_corners(Points& s, const UpperFace& face) {
  for (int k = 0; k < 4; ++k) put_upper_corner(s, k, face, k == 3 ? 0 : k);
}

// Whether a search ended with the whole upper face, whose normal is then exact. `normal` receives it.
DEVICE bool ended_with_face(const Difference& d, const Simplex& s, real* normal) {
  if (!begins_with_face(d)) return false;
  real upward[3];
  to_world(upward, d.a.mat, d.a.hull.top);
  int corners = 0;
  for (int k = 0; k < 4; ++k) {
    if (!s.used[k]) continue;
    if (s.vertex[k][0] < 0) return false;  // not known of a search that several kernels share
    for (int i = 0; i < 3; ++i) {
      if (s.dir[k][i] != upward[i]) return false;
    }
    corners |= 1 << s.vertex[k][0];
  }
  if (corners != 7 << 3) return false;
  for (int i = 0; i < 3; ++i) normal[i] = upward[i];
  return true;
}
#endif
