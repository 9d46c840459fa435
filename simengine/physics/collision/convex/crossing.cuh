// Almost parallel edges of two cores that cross far from the points that a search gives. Those points are off by the
// root of the rounding, or of where the search ended, and the crossing is farther away by the inverse of the edges'
// angle. It is right if both edges hold it: then its points belong to the cores, and differ along the normal only.
#pragma once

#define CROSSING_ASIDE R(1e-4)  // [rad] from a normal to the ends of an edge
#define CROSSING_TOUCHES R(1e-5)  // relative to the scale: an end this close to the farthest point touches

// Whether the edge of a core at the unit vector n, along the unit vector `edge`, holds a point of its line. A smooth
// part has no extent along it.
DEVICE_APART bool edge_holds(const Shape& s, const real* n, const real* edge, const real* point, real scale) {
  real own[3], along[3], there[3], end[3], at[3];
  for (int i = 0; i < 3; ++i) there[i] = point[i] - s.pos[i];
  to_local(at, s.mat, there);
  to_local(own, s.mat, n);
  to_local(along, s.mat, edge);
  flat_point(s, flat_vertex(s, own), end);
  const real place = dot3(at, along), least = dot3(end, own) - CROSSING_TOUCHES * scale;
  for (int way = -1; way <= 1; way += 2) {
    for (int i = 0; i < 3; ++i) there[i] = fma_(way * CROSSING_ASIDE, along[i], own[i]);
    flat_point(s, flat_vertex(s, there), end);
    if (dot3(end, own) < least || way * (place - dot3(end, along)) > 0) return false;
  }
  return true;
}

// Whether two kinks are edges, one of each core, that hold the points which lie `share` along them from p1 and p2.
DEVICE_APART bool edges_cross(const Difference& d, const real* n, const Kinks& kinks, const real* share,
                              const real* p1, const real* p2) {
  if (kinks.number < 2 || kinks.body[0] == kinks.body[1]) return false;
  for (int k = 0; k < 2; ++k) {
    const int body = kinks.body[k];
    real point[3], out[3];
    for (int i = 0; i < 3; ++i) {
      point[i] = body ? fma_(share[k], kinks.edge[k][i], p2[i]) : fma_(-share[k], kinks.edge[k][i], p1[i]);
      out[i] = body ? -n[i] : n[i];
    }
    if (!edge_holds(body ? d.b : d.a, out, kinks.edge[k], point, d.scale)) return false;
  }
  return true;
}
