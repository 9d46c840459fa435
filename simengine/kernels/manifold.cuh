// Several contacts of flat features. MuJoCo's rules, found by experiment: where an edge lies within FLAT of a face that
// the shapes touch with, it is clipped against the face, and each end within the margin becomes a contact with the
// face's normal. A cylinder's cap counts as a polygon of CAP_SIDES corners. An end made by clipping is listed twice if
// it is the only one.
#pragma once

#define FLAT R(0.0888)  // sine of the largest angle between an edge and a face
#define CAP_SIDES 16

// Corner k of a cap of radius one, in its plane.
DEVICE void cap_corner(int k, real* x, real* y) { sincos_(R(6.283185307179586) / CAP_SIDES * k, y, x); }

struct Clipped {
  real from, to;  // part of the segment that is left, as parameters in [0, 1]; none where from > to
};

// The part of the segment from a to b, in the frame of a cap of radius r, that lies over the cap.
DEVICE_CALL Clipped clip_to_cap(const real* a, const real* b, real r) {
  Clipped out = {R(0.0), R(1.0)};
  ROLLED for (int k = 0; k < CAP_SIDES; ++k) {
    real x0, y0, x1, y1;
    cap_corner(k, &x0, &y0);
    cap_corner(k + 1, &x1, &y1);
    const real nx = y1 - y0, ny = x0 - x1, side = r * (nx * x0 + ny * y0);  // outward
    const real da = fma_(nx, a[0], ny * a[1]) - side, db = fma_(nx, b[0], ny * b[1]) - side;
    if (da > 0 && db > 0) out.to = -1;
    if (da > 0 && db <= 0) out.from = max_(out.from, da / (da - db));
    if (da <= 0 && db > 0) out.to = min_(out.to, da / (da - db));
  }
  return out;
}

// Contacts of a capsule that lies on a cylinder's cap: as many as the ends of its line over the cap, 0 where it does
// not lie there. `normal` points from the capsule to the cylinder.
DEVICE_CALL int capsule_on_cap(const Pair& p, const real* normal, real margin, Contact* out) {
  real axis[3], up[3], aside[3], ends[2][3], local[2][3];
  mat_col(axis, p.mat1, 2);
  mat_col(up, p.mat2, 2);
  if (abs_(dot3(axis, up)) > FLAT) return 0;
  // (1) the cap that the normal points into, and the capsule's line that is nearest to it; both are half the margin
  // thicker, and the line is nearer to the axis where the normal is not across it
  const bool top = dot3(normal, up) < 0;
  for (int i = 0; i < 3; ++i) up[i] = top ? up[i] : -up[i];
  const real along = dot3(normal, axis), thick = p.size1[0] + R(0.5) * margin;
  for (int i = 0; i < 3; ++i) aside[i] = fma_(-along, axis[i], normal[i]);
  for (int e = 0; e < 2; ++e) {
    real offset[3];
    for (int i = 0; i < 3; ++i) {
      ends[e][i] = fma_(e ? p.size1[1] : -p.size1[1], axis[i], fma_(thick, aside[i], p.pos1[i]));
      offset[i] = ends[e][i] - p.pos2[i];
    }
    to_local(local[e], p.mat2, offset);
  }
  // (2) the part of it over the cap
  const Clipped part = clip_to_cap(local[0], local[1], p.size2[0]);
  if (part.from > part.to) return 0;
  // (3) its ends, the one that clipping made first; one that has no partner counts twice if clipping made it
  const bool cut[2] = {part.from > 0, part.to < 1};
  int number = 0;
  for (int k = 0; k < 2; ++k) {
    const int e = cut[0] == cut[1] ? k : 1 - k;
    const real t = e ? part.to : part.from;
    const real height = fma_(t, local[1][2] - local[0][2], local[0][2]);
    const real dist = (top ? height : -height) - p.size2[1] + R(0.5) * margin;
    if (dist > margin) continue;
    Contact& c = out[number++];
    c.dist = dist;
    for (int i = 0; i < 3; ++i) {
      const real point = fma_(t, ends[1][i] - ends[0][i], ends[0][i]);
      c.pos[i] = fma_(R(0.5) * (margin - dist), up[i], point);
      c.frame[i] = -up[i];
      c.frame[3 + i] = 0;
    }
    make_frame(c.frame);
    if (!cut[e]) continue;
    real next = (e ? part.from : part.to);
    const real other = fma_(next, local[1][2] - local[0][2], local[0][2]);
    if ((top ? other : -other) - p.size2[1] > R(0.5) * margin) out[number++] = c;
  }
  return number;
}
