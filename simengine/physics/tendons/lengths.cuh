// Lengths that limits and actuators act on: the coordinate of a hinge or slide joint, or the length of a fixed tendon,
// which is a weighted sum of such coordinates. Length number `id` is that of joint id, or of tendon id - njnt.
#pragma once

struct Length {
  real length, velocity;
};

DEVICE real tendon_length(const Model& m, int t, const real* qpos) {
  real length = 0;
  const int begin = m.tendon_adr()[t], end = begin + m.tendon_num()[t];
  ROLLED for (int k = begin; k < end; ++k) {
    length = fma_(m.wrap_prm()[k], qpos[m.wrap_qposadr()[k]], length);
  }
  return length;
}

DEVICE real tendon_velocity(const Model& m, int t, const real* qvel) {
  real velocity = 0;
  const int begin = m.tendon_adr()[t], end = begin + m.tendon_num()[t];
  ROLLED for (int k = begin; k < end; ++k) velocity = fma_(m.wrap_prm()[k], qvel[m.wrap_dofadr()[k]], velocity);
  return velocity;
}

// Inertia that the armature of fixed tendons adds between the dofs of two hinge or slide joints.
DEVICE real tendon_inertia(const Model& m, int v, int w) {
  const int j = m.dof_jntid()[v], begin = m.jnt_wrapadr()[j], end = begin + m.jnt_wrapnum()[j];
  real sum = 0;
  ROLLED for (int i = begin; i < end; ++i) {
    const int own = m.wrap_byjnt()[i], t = m.wrap_tenid()[own], first = m.tendon_adr()[t];
    const auto armature = m.tendon_armature()[t];
    if (!any_world(armature != 0)) continue;
    ROLLED for (int k = first; k < first + m.tendon_num()[t]; ++k) {
      if (m.wrap_dofadr()[k] == w) sum = fma_(armature * m.wrap_prm()[own], m.wrap_prm()[k], sum);
    }
  }
  return sum;
}

// Length and velocity number `id`.
DEVICE Length length_of(const Model& m, int id, const real* qpos, const real* qvel) {
  if (id < m.njnt()) return {qpos[m.jnt_qposadr()[id]], qvel[m.jnt_dofadr()[id]]};
  return {tendon_length(m, id - m.njnt(), qpos), tendon_velocity(m, id - m.njnt(), qvel)};
}

// Angle by which ball joint j is rotated; `axis` receives the axis in the body frame.
DEVICE real ball_angle(const Model& m, int j, const real* qpos, real* axis) {
  real quat[4];
  for (int i = 0; i < 4; ++i) quat[i] = qpos[m.jnt_qposadr()[j] + i];
  normalize4(quat);
  return quat_axis(axis, quat);
}

// Stretch of the spring of dof k of joint j; for a rotation, a component of the rotation vector from its rest.
DEVICE real joint_stretch(const Model& m, int j, int k, const real* qpos) {
  const int adr = m.jnt_qposadr()[j], type = m.jnt_type()[j];
  const real* q = qpos + adr;
  const auto rest = m.qpos_spring() + adr;
  const int turning = type == JNT_FREE ? 3 : type == JNT_BALL ? 0 : 6;  // first of the three rotational dofs
  if (k < turning) return q[k] - rest[k];
  real quat[4], turned[3];
  for (int i = 0; i < 4; ++i) quat[i] = q[turning + i];
  normalize4(quat);
  quat_difference(turned, rest + turning, quat);
  return k == turning ? turned[0] : k == turning + 1 ? turned[1] : turned[2];
}

struct Limit {
  // distance above the lower bound, and below the upper one; a ball joint's angle has one bound, whose distance comes
  // first
  real dist[2], margin;
};

// Length of any tendon. That of a spatial tendon does not follow from qpos alone and must be given.
DEVICE real length_of_tendon(const Model& m, int t, const real* qpos, const real* ten_length) {
  return ten_length && m.tendon_pathnum()[t] ? ten_length[t] : tendon_length(m, t, qpos);
}

// Limit on length number `id`. Without `ten_length`, no tendon may be spatial.
DEVICE Limit limit_of(const Model& m, int id, const real* qpos, const real* ten_length = 0) {
  const bool joint = id < m.njnt();
  if (joint && m.jnt_type()[id] == JNT_BALL) {
    real axis[3];
    const real bound = max_(m.jnt_range()[2 * id], m.jnt_range()[2 * id + 1]);
    return {{bound - ball_angle(m, id, qpos, axis), REAL_MAX}, m.jnt_margin()[id]};
  }
  const int t = joint ? 0 : id - m.njnt();
  const real length = joint ? qpos[m.jnt_qposadr()[id]] : length_of_tendon(m, t, qpos, ten_length);
  const real* range = joint ? m.jnt_range() + 2 * id : m.tendon_range() + 2 * t;
  return {{length - range[0], range[1] - length}, joint ? m.jnt_margin()[id] : m.tendon_margin()[t]};
}
