// The friction forces of a cone in noslip.cu where the rows of its tangents are nearly dependent: their products, and
// sums with large forces that cancel, are in double precision. That the rows themselves are rounded changes a pivot by
// far less, since it is a square.
#pragma once

// Pivots below this part of their terms have too few digits in single precision.
#define THIN_CONES REAL_IS_FLOAT
#define THIN R(1e-4)

#if THIN_CONES
// A cone of n tangents, whose rows of Y have `stride` words each; `radius` is the force along the normal.
struct ThinCone {
  int n, nv, stride;
  real radius;
  const real *Y, *b, *friction;
  real *force, *z;
};

// Entry e of a list that has for each row its products with those before it and with itself, and then its slip.
DEVICE double entry_of(const ThinCone& c, int e) {
  int i = 0;
  for (; e > i + 1; ++i) e -= i + 2;
  if (i >= c.n) return 0;
  const bool is_slip = e > i;
  const real *row = c.Y + i * c.stride, *other = is_slip ? c.z : c.Y + e * c.stride;
  double sum = is_slip ? c.b[i] : R(0.0);
  OVERLAPPED for (int v = 0; v < c.nv; ++v) sum = fma_(double(row[v]), double(other[v]), sum);
  return sum;
}

// Take the forces to their optimum while all others stay fixed; returns the decrease of the cost. Each lane adds up
// whole entries, so that the sums are those of a single lane. Nothing here is called: what is live across a call would
// take registers from the sweeps over all other rows.
DEVICE real improve_thin_cone(const ThinCone& c) {
  const int n = c.n;
  double A[MAX_CONE_ROWS * MAX_CONE_ROWS], friction[MAX_CONE_ROWS], noise = 8.0 * REAL_EPS;
  double old[MAX_CONE_ROWS], slip[MAX_CONE_ROWS], force[MAX_CONE_ROWS], own = 0;
  lane_sync();
  ROLLED for (int i = 0, e = 0; i < n; ++i) {
    old[i] = c.force[i];
    friction[i] = c.friction[i];
    force[i] = 0;
    ROLLED for (int j = 0; j < i + 2; ++j, ++e) {
      if (e % LANES == 0) own = entry_of(c, e + lane());
      const double entry = lane_get(own, e % LANES);
      if (j > i) {
        slip[i] = entry;
      } else {
        A[MAX_CONE_ROWS * i + j] = A[MAX_CONE_ROWS * j + i] = entry;
      }
    }
  }
  const double radius = c.radius;
  if (radius >= MJMINVAL) best_of_tangents<double>(n, A, slip, old, friction, radius, noise * noise, force);
  ROLLED for (int i = 0; i < n; ++i) force[i] = real(force[i]);
  const double cost = cost_of(n, A, slip, old, force, &noise);
  if (cost > noise) return 0;
  lane_sync();
  DOF_FOR(v, c.nv) {
    double sum = c.z[v];
    ROLLED for (int i = 0; i < n; ++i) sum += (force[i] - old[i]) * c.Y[i * c.stride + v];
    c.z[v] = real(sum);
  }
  lane_sync();
  if (lane() == 0) {
    ROLLED for (int i = 0; i < n; ++i) c.force[i] = real(force[i]);
  }
  return real(-cost);
}
#endif
