// Implicit integration: the derivative of the smooth forces with respect to the velocity, and the step it gives. MuJoCo
// documentation, "Computation", "Numerical integration". As in MuJoCo, the derivative couples dofs of one branch only.
//
// The force on each body is linearised in the body's velocity: a 6 x 6 matrix maps com-based motion to com-based force.
// The matrices of a subtree add up, like composite inertias. Source of this form for Coriolis and centrifugal forces:
// S. Echeandia and P. Wensing, Numerical methods to compute the Coriolis matrix and Christoffel symbols for rigid-body
// systems, J. Comput. Nonlinear Dyn. 16 (2021), algorithm 1.
#pragma once

// The fields from which the derivatives are computed.
struct Moving {
  const real *qvel, *xipos, *ximat, *geom_xpos, *geom_xmat, *subtree_com, *cinert, *crb, *cdof, *cvel, *cdof_dot;
  const real *ten_J, *ctrl, *act, *act_dot, *actuator_length, *actuator_velocity, *actuator_moment;
  const real *actuator_force, *qfrc_actuator;
};

DEVICE bool at_bound(real x, const real* range, real slack) { return x <= range[0] + slack || x >= range[1] - slack; }

// Derivative of actuator u's force with respect to its velocity; zero where the force is clamped.
DEVICE real actuator_slope(const Model& m, int u, const Moving& f) {
  const int type = m.actuator_trntype()[u], id = m.actuator_trnid()[2 * u];
  if (m.actuator_disabled()[u]) return 0;
  if (m.actuator_forcelimited()[u] && at_bound(f.actuator_force[u], m.actuator_forcerange() + 2 * u, 0)) return 0;
  if (type == TRN_JOINT || type == TRN_JOINTINPARENT) {
    const bool limited = m.jnt_actfrclimited()[id] || (m.ngravcomp() && m.jnt_gravcomp()[id] == GRAVCOMP_LIMITED);
    if (limited && at_bound(f.qfrc_actuator[m.jnt_dofadr()[id]], m.jnt_actfrcrange() + 2 * id, 0)) return 0;
  }
  if (type == TRN_TENDON && m.tendon_actfrclimited()[id]) {
    const real* range = m.tendon_actfrcrange() + 2 * id;
    real total = 0;  // if the forces were scaled to the bound, their sum differs from it by rounding alone
    ROLLED for (int w = 0; w < m.nu(); ++w) {
      if (m.actuator_trntype()[w] == TRN_TENDON && m.actuator_trnid()[2 * w] == id) total += f.actuator_force[w];
    }
    if (at_bound(total, range, R(1e-6) * max_(abs_(range[0]), abs_(range[1])))) return 0;
  }
  const real input = actuator_input(m, u, f.ctrl, f.act, f.act_dot);
  return force_of(m, u, input, f.actuator_length[u], f.actuator_velocity[u]).slope;
}

// Subtract from `out` the change of the inertial force on a body under a change x of its velocity, without the product
// of the inertia and the rate of the motion axis, which force_derivative adds.
DEVICE void coriolis_change(const real* inertia, const real* vel, const real* x, real* out) {
  real turned[6], a[6], momentum[6], c[6];
  cross_motion(turned, x, vel);
  inert_mul(a, inertia, turned);
  inert_mul(momentum, inertia, vel);
  cross_force(c, x, momentum);
  for (int i = 0; i < 6; ++i) a[i] += c[i];
  inert_mul(momentum, inertia, x);
  cross_force(c, vel, momentum);
  for (int i = 0; i < 6; ++i) out[i] -= a[i] + c[i];
}

// Whether the tree of body b has one joint, which is free: implicitfast includes the Coriolis forces of such trees.
DEVICE bool free_alone(const Model& m, int b) {
  const int root = m.body_rootid()[b];
  if (m.body_dofnum()[root] != 6 || m.jnt_type()[m.body_jntadr()[root]] != JNT_FREE) return false;
  ROLLED for (int c = root + 1; c <= m.body_last()[root]; ++c) {
    if (m.body_dofnum()[c]) return false;
  }
  return true;
}

// maps[b] becomes the derivative of the force on the subtree of body b with respect to its motion, 6 x 6 row-major.
DEVICE void subtree_maps(const Model& m, const Moving& f, bool coriolis, bool has_fluid, real* maps) {
#ifdef COUPLED_IN_VECTORS
  if (!has_fluid) {
    const auto turns = [&](int b) { return coriolis || free_alone(m, b); };  // others have maps that nobody reads
    for (int b = 1; b < m.nbody(); ++b) {
      if (turns(b)) coriolis_map(f.cinert + 10 * b, f.cvel + 6 * b, maps + 36 * b);
    }
    for (int b = m.nbody() - 1; b > 0; --b) {
      const int parent = m.body_parentid()[b];
      if (!parent || !turns(b)) continue;
      for (int i = 0; i < 36; ++i) maps[36 * parent + i] += maps[36 * b + i];
    }
    return;
  }
#endif
  LANE_FOR(e, 6 * m.nbody()) {
    const int b = e / 6, k = e % 6;
    const real* com = f.subtree_com + 3 * m.body_rootid()[b];
    real x[6], out[6] = {0, 0, 0, 0, 0, 0};
    for (int i = 0; i < 6; ++i) x[i] = i == k;
    if (b && (coriolis || free_alone(m, b))) coriolis_change(f.cinert + 10 * b, f.cvel + 6 * b, x, out);
    if (b && has_fluid && m.body_fluid()[b]) {
      ellipsoid_change(m, b, f.geom_xpos, f.geom_xmat, com, f.cvel + 6 * b, x, out);
    } else if (b && has_fluid) {
      box_change(m, b, f.xipos + 3 * b, f.ximat + 9 * b, com, f.cvel + 6 * b, x, out);
    }
    for (int i = 0; i < 6; ++i) maps[36 * b + 6 * i + k] = out[i];
  }
  lane_sync();
  sum_subtrees(m, maps, 36);
}

// drift[v] = rate of the motion axis of dof v relative to the bodies it moves: cdof_dot - cdof x (velocity after v).
DEVICE void axis_drifts(const Model& m, const Moving& f, real* drift) {
  DOF_FOR(v, m.nv()) {
    const int j = m.dof_jntid()[v], b = m.dof_bodyid()[v], adr = m.jnt_dofadr()[j], type = m.jnt_type()[j];
    // the rotations of a ball or free joint count as one dof here, and so do the translations of a free joint
    const int until = type == JNT_FREE ? (v < adr + 3 ? adr + 3 : adr + 6) : type == JNT_BALL ? adr + 3 : v + 1;
    real vel[6], turned[6];
    for (int i = 0; i < 6; ++i) vel[i] = f.cvel[6 * m.body_parentid()[b] + i];
    ROLLED for (int u = m.body_dofadr()[b]; u < until; ++u) {
      for (int i = 0; i < 6; ++i) vel[i] = fma_(f.cdof[6 * u + i], f.qvel[u], vel[i]);
    }
    cross_motion(turned, f.cdof + 6 * v, vel);
    for (int i = 0; i < 6; ++i) drift[6 * v + i] = f.cdof_dot[6 * v + i] - turned[i];
  }
  lane_sync();
}

// Dot product of motion axis a with the force that the motion x causes on a subtree, whose derivative is `map`.
DEVICE real subtree_power(const real* map, const real* a, const real* x) {
  real sum = 0;
  for (int i = 0; i < 6; ++i) sum = fma_(a[i], dot6(map + 6 * i, x), sum);
  return sum;
}

// Minus the derivative of the force of tendon t's damper with respect to its velocity.
DEVICE real tendon_slope(const Model& m, int t, const Moving& f) {
  const real* poly = m.tendon_dampingpoly() + 2 * t;
  if (poly[0] == 0 && poly[1] == 0) return m.tendon_damping()[t];
  real velocity = 0;
  ROLLED for (int v = 0; v < m.nv(); ++v) velocity = fma_(f.ten_J[t * m.nv() + v], f.qvel[v], velocity);
  return damper_slope(m.tendon_damping()[t], poly, velocity);
}

// The part of the derivative of the smooth force on dof i with respect to the velocity of dof j that comes from the
// motion of bodies, where both dofs are on one branch, added to `sum`.
DEVICE real add_motion(const Model& m, int i, int j, const Moving& f, const real* maps, const real* drift,
                       bool coriolis, bool has_fluid, real sum) {
  const int deeper = m.dof_bodyid()[i > j ? i : j];
  const bool turns = coriolis || free_alone(m, m.dof_bodyid()[i]);
  if (!turns && !has_fluid) return sum;
  const real power = subtree_power(maps + 36 * deeper, f.cdof + 6 * i, f.cdof + 6 * j);
  if (!turns) {
    // implicitfast: the symmetric part
    return sum + R(0.5) * (power + subtree_power(maps + 36 * deeper, f.cdof + 6 * j, f.cdof + 6 * i));
  }
  real pulled[6];
  inert_mul(pulled, f.crb + 10 * deeper, drift + 6 * j);
  return sum + power - dot6(f.cdof + 6 * i, pulled);
}

DEVICE bool on_one_branch(const Model& m, int i, int j) {
  const int upper = m.dof_bodyid()[i < j ? i : j], lower = m.dof_bodyid()[i < j ? j : i];
  return upper <= lower && lower <= m.body_last()[upper];
}

// matrix += the sum of scale[k] v v' over the first `number` vectors v in `rows`, each `stride` words behind the last.
// Most have one entry that is not zero, as those of an actuator of a joint. A lane changes its own rows of the n x n
// matrix only.
DEVICE_CALL void add_squares(int number, const real* rows, int stride, const real* scale, real* matrix, int n) {
#if SIMENGINE_GPU && LANES <= 32
  if (n <= 2 * LANES) {
    const int i = lane();
    // four vectors at a time, so that the latencies of their loads overlap
    ROLLED for (int first = 0; first < number; first += 4) {
      real v[4][2];
#pragma unroll
      for (int q = 0; q < 4; ++q) {
#pragma unroll
        for (int p = 0; p < 2; ++p) {
          const bool there = first + q < number && p * LANES + i < n;
          v[q][p] = there ? rows[(first + q) * stride + p * LANES + i] : R(0.0);
        }
      }
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const real factor = first + q < number ? scale[first + q] : R(0.0);
        if (factor == 0) continue;
#pragma unroll
        for (int p = 0; p < 2; ++p) {
          unsigned there = lane_ballot(v[q][p] != 0);
          while (there) {
            const int from = lowest_bit(there), j = p * LANES + from;
            const real other = lane_get(v[q][p], from);
            real* column = matrix + j;
            if (v[q][0] != 0) column[i * n] = fma_(factor, v[q][0] * other, column[i * n]);
            if (v[q][1] != 0) column[(LANES + i) * n] = fma_(factor, v[q][1] * other, column[(LANES + i) * n]);
            there &= there - 1;
          }
        }
      }
    }
    return;
  }
#endif
  ROLLED for (int k = 0; k < number; ++k) {
    const real factor = scale[k], *v = rows + k * stride;
    if (factor == 0) continue;
#ifdef COUPLED_IN_VECTORS
    if (n <= VECTOR_WIDTH) {
      const unsigned there = bits_of(load_words(v, n) != Lanes{});
      for (unsigned rest = there; rest; rest &= rest - 1) {
        const int i = __builtin_ctz(rest);
        for (unsigned other = there; other; other &= other - 1) {
          const int j = __builtin_ctz(other);
          matrix[i * n + j] = fma_(factor, v[i] * v[j], matrix[i * n + j]);
        }
      }
      continue;
    }
#endif
    LANE_FOR(i, n) {
      if (v[i] == 0) continue;
      real* row = matrix + i * n;
      ROLLED for (int j = 0; j < n; ++j) {
        if (v[j] != 0) row[j] = fma_(factor, v[i] * v[j], row[j]);
      }
    }
  }
}

// Whether some tree has one joint, which is free; see free_alone.
DEVICE bool any_alone(const Model& m) {
  int found = 0;
  LANE_FOR(t, m.nroot()) found |= free_alone(m, m.root_body()[t]);
  return lane_any(found);
}
