// The updates of noslip.cu: of a friction loss, of two opposite edges of a pyramid, and of the friction of a cone. Each
// takes the forces to their optimum while all others stay fixed.
#pragma once

// A kernel for worlds without elliptic cones has no code for them, which takes registers from the other updates.
#ifndef NOSLIP_CONES
#define NOSLIP_CONES 1
#endif

// Number of rows that are updated together and whose first row is r: a friction loss alone, two opposite edges of a
// pyramid, or the rows of an elliptic contact; 0 for other rows.
DEVICE int rows_improved(const Model& m, const Rows& rows, int r) {
  const int type = rows.type[r];
  if (type == ROW_FRICTION_DOF || type == ROW_FRICTION_TENDON) return 1;
  if (type == ROW_CONTACT_PYRAMIDAL) return (r - rows.address[rows.id[r]]) % 2 ? 0 : 2;
  return NOSLIP_CONES && type == ROW_CONTACT_ELLIPTIC ? rows_together(m, rows, r) : 0;
}

// The force of a friction loss, or half the difference of the forces of two opposite edges: one number, whose absolute
// value has a bound. Its cost has the curvature `curve`, and the slope `residual` while no force has changed.
struct ScalarForce {
  real residual, force, bound, curve;
};

// That of the friction loss r, or of the edges whose first row is r. Without curvature, edges get equal forces.
DEVICE ScalarForce scalar_force(const DenseDual& d, int r, bool edges) {
  const real *force = d.force + r, *block = d.block + MAX_CONE_ROWS * r;
  if (!edges) return {d.b[r], force[0], d.rows.frictionloss[r], block[0]};
  const real curve = block[1], noise = 16 * REAL_EPS;
  const bool flat = curve < max_(MJMINVAL, noise * noise * (block[0] + block[MAX_CONE_ROWS]));
  const real middle = R(0.5) * (force[0] + force[1]), half = R(0.5) * (force[0] - force[1]);
  return {d.b[r] - d.b[r + 1], half, flat ? R(0.0) : middle, curve};
}

DEVICE void put_scalar(const DenseDual& d, int r, bool edges, real x) {
  real* force = d.force + r;
  const real middle = edges ? R(0.5) * (force[0] + force[1]) : R(0.0);
  force[0] = edges ? middle + x : x;
  if (edges) force[1] = middle - x;
}

// The optimum of such a force while the others stay fixed; `coupled` is what their changes add to the slope. Returns
// false if the optimum costs more, or else adds the decrease of the cost to `improvement`.
DEVICE bool improve_scalar(const ScalarForce& now, bool edges, real coupled, real* best, real* improvement) {
  const real slope = now.residual + coupled;
  *best = clamp_(now.force - divide_(slope, now.curve), -now.bound, now.bound);
  const real change = *best - now.force, cost = change * fma_(R(0.5) * now.curve, change, slope);
  const real rounding = edges ? R(0.0) : 4 * REAL_EPS * abs_(slope);
  if (cost > fma_(rounding, abs_(*best) + abs_(now.force), R(1e-10))) return false;
  *improvement -= cost;
  return true;
}

// The same for the friction forces of a cone whose first row is r.
DEVICE real improve_cone(const Model& m, const DenseDual& d, int r, int dim) {
  const int nv = m.nv(), stride = m.nvp(), first = r + 1, n = dim - 1;
  const real *A = d.block + MAX_CONE_ROWS * r + MAX_CONE_ROWS + 1, *Y = d.Y + first * stride;
  real old[MAX_CONE_ROWS], slip[MAX_CONE_ROWS], force[MAX_CONE_ROWS], coupled[MAX_CONE_ROWS - 1];
  UNROLLED for (int i = 0; i < MAX_CONE_ROWS - 1; ++i) {
    coupled[i] = 0;
    if (i >= n) continue;
    DOF_FOR(v, nv) coupled[i] = fma_(Y[i * stride + v], d.z[v], coupled[i]);
    slip[i] = d.b[first + i];
    old[i] = d.force[first + i];
    force[i] = 0;
  }
  if (n > 2) {
    lane_sums<MAX_CONE_ROWS - 1>(coupled);
  } else {
    lane_sums<2>(coupled);
  }
  UNROLLED for (int i = 0; i < MAX_CONE_ROWS - 1; ++i) {
    if (i < n) slip[i] += coupled[i];
  }
  if (d.force[r] >= MJMINVAL) {
    const real *friction = friction_of(m, d.rows, r), noise = THIN_CONES ? THIN : PIVOT_NOISE;
    const bool found = best_tangents(n, A, slip, old, friction, d.force[r], noise, force);
#if THIN_CONES
    if (!found) return improve_thin_cone({n, nv, stride, d.force[r], Y, d.b + first, friction, d.force + first, d.z});
#endif
  }
  real noise;
  const real cost = cost_of(n, A, slip, old, force, &noise);
  if (cost > noise) return 0;  // these forces may not be optimal
  ROLLED for (int i = 0; i < n; ++i) {
    const real change = force[i] - old[i];
    DOF_FOR(v, nv) d.z[v] = fma_(change, Y[i * stride + v], d.z[v]);
  }
  lane_sync();
  if (lane() == 0) {
    ROLLED for (int i = 0; i < n; ++i) d.force[first + i] = force[i];
  }
  return -cost;
}
