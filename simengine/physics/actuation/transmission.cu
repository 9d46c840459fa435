// Lengths of the actuators and their derivatives: MuJoCo documentation, "Computation", "Actuation model",
// "Transmission". A transmission to sites exerts a force vector on each of two bodies. The moment of a dof is the dot
// product of its motion axis with the force vectors on the bodies that it moves.

// Rotate a gear from the frame of the joint's parent to that of its body; quat is the joint's rotation.
DEVICE void gear_in_body(const real* quat, const real* gear, real* out) {
  real back[4] = {quat[0], -quat[1], -quat[2], -quat[3]};
  normalize4(back);
  quat_rotate(out, back, gear);
}

DEVICE real joint_length(const Model& m, int u, int j, const real* qpos) {
  const real *gear = m.actuator_gear() + 6 * u, identity[4] = {1, 0, 0, 0};
  const int type = m.jnt_type()[j], adr = m.jnt_qposadr()[j];
  if (type == JNT_FREE) return 0;
  if (type != JNT_BALL) return gear[0] * qpos[adr];
  real quat[4], turned[3];
  for (int i = 0; i < 4; ++i) quat[i] = qpos[adr + i];
  normalize4(quat);
  quat_difference(turned, identity, quat);
  return dot3(gear, turned);  // the rotation leaves its own axis unchanged, so both frames give the same length
}

DEVICE real joint_moment(const Model& m, int u, int j, int v, const real* qpos) {
  const real* gear = m.actuator_gear() + 6 * u;
  const int type = m.jnt_type()[j], k = v - m.jnt_dofadr()[j];
  if (m.dof_jntid()[v] != j) return 0;
  if (type >= JNT_SLIDE || (type == JNT_FREE && k < 3)) return gear[k];
  if (m.actuator_trntype()[u] != TRN_JOINTINPARENT) return gear[k];
  const int first = type == JNT_FREE ? 3 : 0;
  real turned[3];
  gear_in_body(qpos + m.jnt_qposadr()[j] + first, gear + first, turned);
  return k == first ? turned[0] : k == first + 1 ? turned[1] : turned[2];
}

// Com-based force vector on the body of site s, of a force at the site and a torque.
DEVICE void site_wrench(const Model& m, int s, const real* force, const real* torque, const real* site_xpos,
                        const real* subtree_com, real* out) {
  const int root = m.body_rootid()[m.site_bodyid()[s]];
  force_at(out, force, torque, site_xpos + 3 * s, subtree_com + 3 * root);
}

// Site transmission: the gear as a force and a torque in the frame of the site or, if there is one, the reference site.
DEVICE real site_length(const Model& m, int u, const real* xquat, const real* subtree_com, const real* site_xpos,
                        const real* site_xmat, real* wrench) {
  const int s = m.actuator_trnid()[2 * u], ref = m.actuator_trnid()[2 * u + 1], frame = ref < 0 ? s : ref;
  const real* gear = m.actuator_gear() + 6 * u;
  real force[3], torque[3], back[6], offset[3], quat[4], ref_quat[4], turned[3];
  for (int i = 0; i < 3; ++i) {
    force[i] = dot3(site_xmat + 9 * frame + 3 * i, gear);
    torque[i] = dot3(site_xmat + 9 * frame + 3 * i, gear + 3);
  }
  site_wrench(m, s, force, torque, site_xpos, subtree_com, wrench);
  if (ref < 0) return 0;
  site_wrench(m, ref, force, torque, site_xpos, subtree_com, back);
  for (int i = 0; i < 6; ++i) wrench[6 + i] = -back[i];
  for (int i = 0; i < 3; ++i) offset[i] = site_xpos[3 * s + i] - site_xpos[3 * ref + i];
  quat_mul(quat, xquat + 4 * m.site_bodyid()[s], m.site_quat() + 4 * s);
  quat_mul(ref_quat, xquat + 4 * m.site_bodyid()[ref], m.site_quat() + 4 * ref);
  quat_difference(turned, ref_quat, quat);
  return dot3(force, offset) + dot3(gear + 3, turned);
}

// Slider-crank: position along the slider, which a rod of fixed length joins to the crank's pin.
DEVICE real crank_length(const Model& m, int u, const real* subtree_com, const real* site_xpos, const real* site_xmat,
                         real* wrench) {
  const int pin = m.actuator_trnid()[2 * u], slider = m.actuator_trnid()[2 * u + 1];
  const real gear = m.actuator_gear()[6 * u], rod = m.actuator_cranklength()[u], none[3] = {0, 0, 0};
  real axis[3], offset[3], force[3], back[3], torque[3], turning[3];
  mat_col(axis, site_xmat + 9 * slider, 2);
  for (int i = 0; i < 3; ++i) offset[i] = site_xpos[3 * pin + i] - site_xpos[3 * slider + i];
  const real along = dot3(offset, axis), square = along * along + rod * rod - dot3(offset, offset);
  // a rod too short to reach the pin counts as none
  const real reach = square > 0 ? sqrt_(square) : R(0.0), inverse = square > 0 ? reciprocal_(reach) : R(0.0);
  const real share = gear * (R(1.0) - along * inverse);
  for (int i = 0; i < 3; ++i) {
    force[i] = share * axis[i] + gear * inverse * offset[i];
    back[i] = -force[i];
    turning[i] = share * offset[i];
  }
  cross3(torque, axis, turning);
  site_wrench(m, pin, force, none, site_xpos, subtree_com, wrench);
  site_wrench(m, slider, back, torque, site_xpos, subtree_com, wrench + 6);
  return gear * (along - reach);
}

// Moment of dof v for a transmission to sites. A dof that moves both the site and its reference site has none.
DEVICE real site_moment(const Model& m, int u, int v, const real* cdof, const real* wrench) {
  const int other = m.actuator_trnid()[2 * u + 1];
  const bool first = moves(m, v, m.site_bodyid()[m.actuator_trnid()[2 * u]]);
  const bool second = other >= 0 && moves(m, v, m.site_bodyid()[other]);
  if (first && second && m.actuator_trntype()[u] == TRN_SITE) return 0;
  return (first ? dot6(cdof + 6 * v, wrench) : R(0.0)) + (second ? dot6(cdof + 6 * v, wrench + 6) : R(0.0));
}

// An entry of the moments: its actuator and dof, and the transmission of the actuator.
struct MomentEntry {
  int actuator, dof, type, id;
};

DEVICE MomentEntry moment_entry(const Model& m, int e) {
  if (e >= m.nJmom()) return {-1, 0, 0, 0};
  return {m.moment_entry()[2 * e], m.moment_entry()[2 * e + 1], 0, 0};
}

DEVICE void find_transmission(const Model& m, MomentEntry& entry) {
  if (entry.actuator < 0) return;
  entry.type = m.actuator_trntype()[entry.actuator];
  entry.id = m.actuator_trnid()[2 * entry.actuator];
}

DEVICE void transmission(const Model& m, const real* qpos, const real* qvel, const real* xquat, const real* subtree_com,
                         const real* cdof, const real* site_xpos, const real* site_xmat, const real* ten_length,
                         const real* ten_J, real* actuator_length, real* actuator_velocity, real* actuator_moment,
                         real* wrench) {
  const int nv = m.nv();
  // (1) lengths, and the force vectors at sites
  LANE_FOR(u, m.nu()) {
    const int type = m.actuator_trntype()[u], id = m.actuator_trnid()[2 * u];
    real length;
    if (type == TRN_SITE) {
      length = site_length(m, u, xquat, subtree_com, site_xpos, site_xmat, wrench + 12 * u);
    } else if (type == TRN_SLIDERCRANK) {
      length = crank_length(m, u, subtree_com, site_xpos, site_xmat, wrench + 12 * u);
    } else if (type == TRN_BODY) {
      length = 0;  // an adhesion actuator; its moment needs the contacts, see adhesion.cu
    } else if (type == TRN_TENDON) {
      length = m.actuator_gear()[6 * u] * ten_length[id];
    } else {
      length = joint_length(m, u, id, qpos);
    }
    actuator_length[u] = length;
  }
  lane_sync();
  // (2) moments: derivatives of the lengths with respect to the velocities
#if !SIMENGINE_GPU
  // the host may have them in scratch; on a GPU they are in memory, where the other entries are zero from the start
  const int moments = m.nu() * nv;  // read once, though stores might change it for all that the compiler knows
  LANE_FOR_LOADS(e, moments) actuator_moment[e] = 0;
  lane_sync();
#endif
  // what the next entries of a lane follow from is loaded ahead, because each load gives the address of the next
  MomentEntry next = moment_entry(m, lane()), after = moment_entry(m, lane() + LANES);
  find_transmission(m, next);
  LANE_FOR(e, m.nJmom()) {
    const int u = next.actuator, v = next.dof, type = next.type, id = next.id;
    next = after;
    find_transmission(m, next);
    after = moment_entry(m, e + 2 * LANES);
    real value;
    if (type == TRN_SITE || type == TRN_SLIDERCRANK) {
      value = site_moment(m, u, v, cdof, wrench + 12 * u);
    } else if (type == TRN_BODY) {
      value = 0;
    } else if (type == TRN_TENDON) {
      value = m.actuator_gear()[6 * u] * ten_J[id * nv + v];
    } else {
      value = joint_moment(m, u, id, v, qpos);
    }
    actuator_moment[u * nv + v] = value;
  }
  lane_sync();
  // (3) velocities, which MuJoCo leaves at zero for an actuator that moves nothing
  LANE_FOR(u, m.nu()) {
    real velocity = 0;
    OVERLAPPED for (int e = m.moment_rowadr()[u]; e < m.moment_rowadr()[u + 1]; ++e) {
      const int v = m.moment_entry()[2 * e + 1];
      velocity = fma_(actuator_moment[u * nv + v], qvel[v], velocity);
    }
    actuator_velocity[u] = m.opt_actuation() ? velocity : R(0.0);
  }
  lane_sync();
}
