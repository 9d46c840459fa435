// Springs and dampers whose stiffness and damping may be polynomials. With stretch x and velocity v:
//
//     force = -x (k + k1 x + k2 x^2)        energy = x^2 (k / 2 + k1 x / 3 + k2 x^2 / 4)
//     force = -v (b + b1 |v| + b2 v^2)
//
// The stretch of scalar joints and tendons has a sign. For the rotation of a ball or free joint and the translation of
// a free joint, the stretch is a vector: x in brackets is its length, and x before them is one of its components.
// Source: MuJoCo documentation, "Computation", "Passive forces", "Polynomial forces".
#pragma once

// Stiffness at stretch x, and damping at speed |v|.
DEVICE real rate_at(real linear, const real* poly, real x) { return fma_(x, fma_(x, poly[1], poly[0]), linear); }

DEVICE real damper_force(real damping, const real* poly, real velocity) {
  return -rate_at(damping, poly, abs_(velocity)) * velocity;
}

// Minus the derivative of a damper's force with respect to the velocity.
DEVICE real damper_slope(real damping, const real* poly, real velocity) {
  const real v = abs_(velocity);
  return fma_(v, fma_(v, 3 * poly[1], 2 * poly[0]), damping);
}

DEVICE real spring_energy(real stiffness, const real* poly, real x) {
  const real rate = fma_(x, fma_(x, R(0.25) * poly[1], poly[0] / R(3.0)), R(0.5) * stiffness);
  return rate * x * x;
}

DEVICE bool is_sprung(const Model& m, int j) {
  const real* poly = m.jnt_stiffnesspoly() + 2 * j;
  return m.jnt_stiffness()[j] != 0 || poly[0] != 0 || poly[1] != 0;
}

// The stretch vector that dof k of joint j belongs to: its first dof, and the number of its components.
DEVICE int first_of_stretch(const Model& m, int j, int k) { return m.jnt_type()[j] == JNT_FREE ? k / 3 * 3 : 0; }
DEVICE int size_of_stretch(const Model& m, int j) {
  return m.jnt_type()[j] == JNT_FREE || m.jnt_type()[j] == JNT_BALL ? 3 : 1;
}

// Stiffness of the spring of dof k of joint j at stretch x.
DEVICE real joint_stiffness(const Model& m, int j, int k, real x, const real* qpos) {
  const real linear = m.jnt_stiffness()[j], *poly = m.jnt_stiffnesspoly() + 2 * j;
  if (size_of_stretch(m, j) == 1) return rate_at(linear, poly, x);
  if (poly[0] == 0 && poly[1] == 0) return linear;
  real square = 0;
  for (int i = 0; i < 3; ++i) {
    const real y = joint_stretch(m, j, first_of_stretch(m, j, k) + i, qpos);
    square = fma_(y, y, square);
  }
  return rate_at(linear, poly, sqrt_(square));
}

// Force along tendon t from its damper and its spring, which has no force within a range of lengths.
DEVICE real tendon_pull(const Model& m, int t, real length, real velocity) {
  const real* rest = m.tendon_lengthspring() + 2 * t;
  const real stretch = length - clamp_(length, rest[0], rest[1]);
  const real rate = rate_at(m.tendon_stiffness()[t], m.tendon_stiffnesspoly() + 2 * t, stretch);
  return -(rate * stretch) + damper_force(m.tendon_damping()[t], m.tendon_dampingpoly() + 2 * t, velocity);
}

// Add the forces along tendons, projected on each dof, to the forces of the dofs.
DEVICE void add_tendon_forces(const Model& m, const real* ten_force, real* force) {
  DOF_FOR(v, m.nv()) {
    const int j = m.dof_jntid()[v], begin = m.jnt_wrapadr()[j], end = begin + m.jnt_wrapnum()[j];
    ROLLED for (int i = begin; i < end; ++i) {
      const int k = m.wrap_byjnt()[i];
      force[v] = fma_(m.wrap_prm()[k], ten_force[m.wrap_tenid()[k]], force[v]);
    }
  }
  lane_sync();
}
