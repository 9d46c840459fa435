// Equality constraints: MuJoCo documentation, "Computation", "Constraint model", "Equality". The constraints are
//
//   connect           p1 - p2 = 0 for a point of each body
//   weld              that, and ts im(q2* q1) = 0 for a frame of each body, with the torque scale ts
//   joint, tendon     x1 - poly(x2) = 0 for their lengths, measured from qpos0
#pragma once

// Constrained point of the first or second body (side 0 or 1) in the world frame.
DEVICE void equality_point(const Model& m, int e, int side, const real* xpos, const real* xmat, real* out) {
  const int b = m.eq_obj()[2 * e + side];
  const real *anchor = m.eq_anchor() + 6 * e + 3 * side, *mat = xmat + 9 * b;
  for (int i = 0; i < 3; ++i) out[i] = xpos[3 * b + i] + dot3(mat + 3 * i, anchor);
}

// Constrained orientation of the first or second body in the world frame.
DEVICE void equality_quat(const Model& m, int e, int side, const real* xquat, real* out) {
  quat_mul(out, xquat + 4 * m.eq_obj()[2 * e + side], m.eq_quat() + 8 * e + 4 * side);
}

// The constrained points and orientations of a connect or weld, which only a weld needs both of.
struct EqualityFrames {
  real p1[3], p2[3], q1[4], q2[4];
};

// Vector part of conj(a) x b for x = (scalar, vector), times half the torque scale of the weld.
DEVICE void weld_turned(const Model& m, int e, const real* a, const real* b, real scalar, const real* vector,
                        real* out) {
  const real conjugate[4] = {a[0], -a[1], -a[2], -a[3]}, x[4] = {scalar, vector[0], vector[1], vector[2]};
  const real scale = R(0.5) * m.eq_data()[12 * e + 10];
  real half[4], whole[4];
  quat_mul(half, conjugate, x);
  quat_mul(whole, half, b);
  for (int i = 0; i < 3; ++i) out[i] = scale * whole[1 + i];
}

// Torque on the first body of a weld, in the world frame, of the forces f of its three rotational rows: f times the
// transpose of the map from the angular velocity to the rate of the rotation error.
DEVICE void weld_torque(const Model& m, int e, const real* xquat, const real* f, real* out) {
  real q1[4], q2[4];
  equality_quat(m, e, 0, xquat, q1);
  equality_quat(m, e, 1, xquat, q2);
  for (int i = 1; i < 4; ++i) {
    q1[i] = -q1[i];
    q2[i] = -q2[i];
  }
  weld_turned(m, e, q2, q1, R(0.0), f, out);
}

// The fields on positions and velocities that the rows of equality constraints need.
struct Motion {
  const real *xpos, *xquat, *xmat, *subtree_com, *cdof, *cvel, *cdof_dot, *qvel;
};

DEVICE EqualityFrames equality_frames(const Model& m, int e, const Motion& motion) {
  EqualityFrames at;
  equality_point(m, e, 0, motion.xpos, motion.xmat, at.p1);
  equality_point(m, e, 1, motion.xpos, motion.xmat, at.p2);
  for (int i = 0; i < 4; ++i) at.q1[i] = at.q2[i] = 0;
  if (m.eq_type()[e] == EQ_WELD) {
    equality_quat(m, e, 0, motion.xquat, at.q1);
    equality_quat(m, e, 1, motion.xquat, at.q2);
  }
  return at;
}

// Linear acceleration of a point of body b at constant qvel, and angular acceleration of the body; `turning` receives
// the angular velocity. `spatial` is the sum of cdof_dot qvel over the dofs that move the body.
DEVICE void point_drift(const Model& m, const Motion& motion, int b, const real* point, real* linear, real* angular,
                        real* turning) {
  real spatial[6] = {0, 0, 0, 0, 0, 0}, arm[3], velocity[3], part[3];
  ROLLED for (int v = m.body_lastdof()[b]; v >= 0; v = m.dof_parentid()[v]) {
    for (int i = 0; i < 6; ++i) spatial[i] = fma_(motion.cdof_dot[6 * v + i], motion.qvel[v], spatial[i]);
  }
  for (int i = 0; i < 3; ++i) {
    arm[i] = point[i] - motion.subtree_com[3 * m.body_rootid()[b] + i];
    angular[i] = spatial[i];
    turning[i] = motion.cvel[6 * b + i];
  }
  cross3(velocity, turning, arm);
  for (int i = 0; i < 3; ++i) velocity[i] += motion.cvel[6 * b + 3 + i];
  cross3(linear, spatial, arm);
  cross3(part, turning, velocity);
  for (int i = 0; i < 3; ++i) linear[i] += spatial[3 + i] + part[i];
}

// Position of a connect or weld, which has six components, and its drift: the rate of J times qvel.
DEVICE void body_equality(const Model& m, int e, const Motion& motion, const real* p1, const real* p2, const real* q1,
                          const real* q2, real* pos, real* drift) {
  const int *body = m.eq_obj() + 2 * e;
  real linear[2][3], angular[2][3], turning[2][3], change[3];
  point_drift(m, motion, body[0], p1, linear[0], angular[0], turning[0]);
  point_drift(m, motion, body[1], p2, linear[1], angular[1], turning[1]);
  cross3(change, turning[0], turning[1]);
  real relative2 = 0;
  for (int i = 0; i < 3; ++i) {
    const real relative = turning[0][i] - turning[1][i];
    relative2 = fma_(relative, relative, relative2);
    change[i] += angular[0][i] - angular[1][i];
    pos[i] = p1[i] - p2[i];
    drift[i] = linear[0][i] - linear[1][i];
  }
  if (m.eq_type()[e] != EQ_WELD) return;
  const real none[3] = {0, 0, 0};
  weld_turned(m, e, q2, q1, R(-0.5) * relative2, change, drift + 3);
  // with a scalar of 2 for x, because weld_turned takes half
  weld_turned(m, e, q2, q1, R(2.0), none, pos + 3);
}

// Column v of the rows of a connect or weld.
DEVICE void body_equality_column(const Model& m, int e, const Motion& motion, int v, const real* p1, const real* p2,
                                 const real* q1, const real* q2, real* out) {
  real turned[3] = {0, 0, 0}, column[3];
  for (int i = 0; i < 6; ++i) out[i] = 0;
  if (v >= m.nv()) return;
  for (int side = 0; side < 2; ++side) {
    const int b = m.eq_obj()[2 * e + side];
    if (!moves(m, v, b)) continue;
    const real sign = side ? R(-1.0) : R(1.0);
    point_jacobian(m, v, b, side ? p2 : p1, motion.subtree_com, motion.cdof, column);
    for (int i = 0; i < 3; ++i) {
      out[i] = fma_(sign, column[i], out[i]);
      turned[i] = fma_(sign, motion.cdof[6 * v + i], turned[i]);
    }
  }
  if (m.eq_type()[e] == EQ_WELD) weld_turned(m, e, q2, q1, R(0.0), turned, out + 3);
}

// Length of a joint or tendon, measured from its length at qpos0.
DEVICE real length_from_start(const Model& m, bool tendon, int id, const real* qpos, const real* ten_length) {
  if (tendon) return length_of_tendon(m, id, qpos, ten_length) - m.tendon_length0()[id];
  const int adr = m.jnt_qposadr()[id];
  return qpos[adr] - m.qpos0()[adr];
}

// The row of an equality of joints or tendons, written by one lane; returns its position.
template <class Rows>
DEVICE real length_equality(const Model& m, int e, const real* qpos, const real* ten_length, const real* ten_J,
                            const Rows& jacobian, int r) {
  const bool tendon = m.eq_type()[e] == EQ_TENDON;
  const int id1 = m.eq_obj()[2 * e], id2 = m.eq_obj()[2 * e + 1], base = tendon ? m.njnt() : 0;
  const real* c = m.eq_data() + 12 * e;
  const real x = id2 >= 0 ? length_from_start(m, tendon, id2, qpos, ten_length) : R(0.0);
  const real value = fma_(x, fma_(x, fma_(x, fma_(x, c[4], c[3]), c[2]), c[1]), c[0]);
  const real slope = fma_(x, fma_(x, fma_(x, 4 * c[4], 3 * c[3]), 2 * c[2]), c[1]);
  const int dof1 = length_dof(m, base + id1), dof2 = id2 >= 0 ? length_dof(m, base + id2) : -1;
  const RowPlace row = jacobian.start(m, r, dof1, dof2);
  add_length_jacobian(m, base + id1, R(1.0), row.first, ten_J);
  if (id2 >= 0) add_length_jacobian(m, base + id2, -slope, row.second, ten_J);
  return length_from_start(m, tendon, id1, qpos, ten_length) - value;
}
