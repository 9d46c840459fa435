// A shape on a side of a box or on a cylinder's cap, found without a search on a GPU; see resting.cuh for why. There,
// faces of hulls are looked at, too, and the vertices that touch are kept. Here the simplex has directions along which
// they are found again: around the side's normal, so that each corner of what lies on it is farthest along one of them.
#pragma once

#if SIMENGINE_GPU
#define SIDES_TRIED 2      // of an owner
#define SIDE_TILT R(2e-3)  // [rad] from the side's normal to these directions, along each axis of the side

// Look for the side of shape BODY (0 or 1) on which the other one rests. The simplex receives the other's point, in
// place of its weight the distance of that from the side, and the directions.
template <int BODY>
DEVICE int rests_on(const Difference& d, real most, Simplex& s, real* normal) {
  const Shape &own = BODY ? d.b : d.a, &other = BODY ? d.a : d.b;
  if (!is_box(own) && !has_caps(own)) return REST_UNKNOWN;
  const real sign = BODY ? R(-1.0) : R(1.0);
  real offset[3], at[3], outward[3], point[3];
  for (int i = 0; i < 3; ++i) offset[i] = other.pos[i] - own.pos[i];
  to_local(at, own.mat, offset);
  Face face = side_at(own, at);
  ROLLED for (int k = 0; k < SIDES_TRIED && face.number >= 0; ++k) {
    to_world(outward, own.mat, face.normal);
    const real inward[3] = {-outward[0], -outward[1], -outward[2]};
    support(other, inward, point);
    for (int i = 0; i < 3; ++i) offset[i] = point[i] - own.pos[i];
    to_local(at, own.mat, offset);
    const real gap = dot3(face.normal, at) - face.dist;
    if (gap > most) return REST_APART;
    const Face next = side_at(own, at);
    if (next.number != face.number) {
      face = next;
      continue;
    }
    if (gap >= 0 && !is_over_side(own, face, at)) return REST_UNKNOWN;
    const int axis = face.number >> 1, last = axis == 2 ? 1 : 2;  // the latter of the axes along the side
    for (int c = 0; c < 4; ++c) {
      real tilted[3];
      for (int i = 0; i < 3; ++i) {
        tilted[i] = i == axis ? face.normal[i] : (i == last ? c >> 1 : c & 1) ? SIDE_TILT : -SIDE_TILT;
      }
      to_world(s.dir[c], own.mat, tilted);
      for (int i = 0; i < 3; ++i) {
        s.w[c][i] = point[i];
        s.dir[c][i] *= sign;
      }
      s.used[c] = true;
      s.weight[c] = gap;
      s.renew(c);
    }
    for (int i = 0; i < 3; ++i) normal[i] = sign * outward[i];
    s.face = 1 + BODY;
    return REST_FOUND;
  }
  return REST_UNKNOWN;
}

// Look for a side of either shape on which the other one rests.
DEVICE int rests(const Difference& d, real most, Simplex& s, real* normal) {
  s.face = 0;
  s.around = false;
  int found = REST_UNKNOWN;
  if (may_rest(d, d.b)) found = rests_on<0>(d, most, s, normal);
  if (found == REST_UNKNOWN && may_rest(d, d.a)) found = rests_on<1>(d, most, s, normal);
  return found;
}
#endif
