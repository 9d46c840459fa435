// External forces on each body, with constraint forces of rows of every type: the cfrc_ext of MuJoCo's
// mj_rnePostConstraint.

// (2) force and torque of contact k on the body of its second geom, in the world frame.
DEVICE void contact_force(const Model& m, int k, int c, const real* contact_frame, int first, const real* efc_force,
                          real* force, real* torque) {
  const real* f = efc_force + first;
  const real *frame = contact_frame + 9 * k, *friction = m.cand_friction() + 5 * c;
  const int dim = m.cand_condim()[c];
  real local[6] = {f[0], 0, 0, 0, 0, 0};
  if (m.opt_cone() == CONE_ELLIPTIC) {
    for (int i = 1; i < 6; ++i) local[i] = i < dim ? f[i] : R(0.0);
  } else if (dim > 1) {
    local[0] = 0;
    for (int i = 1; i < 6; ++i) {
      if (i >= dim) continue;
      local[0] += f[2 * i - 2] + f[2 * i - 1];
      local[i] = friction[i - 1] * (f[2 * i - 2] - f[2 * i - 1]);
    }
  }
  for (int i = 0; i < 3; ++i) {
    force[i] = frame[i] * local[0] + frame[3 + i] * local[1] + frame[6 + i] * local[2];
    torque[i] = frame[i] * local[3] + frame[3 + i] * local[4] + frame[6 + i] * local[5];
  }
}

// (2), (3) force and torque of connects and welds on body b, about com. They act on the first body, and their reaction
// on the second.
DEVICE void equality_forces(const Model& m, int b, const int* eq_active, const real* xpos, const real* xquat,
                            const real* xmat, const real* com, const real* efc_force, real* sum) {
  int row = 0;
  ROLLED for (int e = 0; e < m.neq(); ++e) {
    const int* body = m.eq_obj() + 2 * e;
    const int rows = eq_active[e] ? m.eq_rows()[e] : 0, type = m.eq_type()[e];
    row += rows;
    if (!rows || type > EQ_WELD || (b != body[0] && b != body[1])) continue;
    const real* f = efc_force + row - rows;
    real torque[3] = {0, 0, 0}, point[3], part[6];
    if (type == EQ_WELD) weld_torque(m, e, xquat, f + 3, torque);
    for (int side = 0; side < 2; ++side) {
      if (body[side] != b) continue;
      equality_point(m, e, side, xpos, xmat, point);
      force_at(part, f, torque, point, com);
      for (int i = 0; i < 6; ++i) sum[i] += side ? -part[i] : part[i];
    }
  }
}

DEVICE void rne_post_general(const Model& m, const real* xfrc_applied, const int* eq_active, const real* xpos,
                             const real* xquat, const real* xmat, const real* xipos, const real* subtree_com,
                             const int* ncon, const int* nefc, const real* contact_pos, const real* contact_frame,
                             const int* contact_cand, const int* contact_efc_address, const real* efc_force,
                             real* cfrc_ext) {
  LANE_FOR(b, m.nbody()) {
    const real* com = subtree_com + 3 * m.body_rootid()[b];
    real sum[6] = {0, 0, 0, 0, 0, 0}, part[6], force[3], torque[3];
    // (1) applied forces
    if (b) force_at(sum, xfrc_applied + 6 * b, xfrc_applied + 6 * b + 3, xipos + 3 * b, com);
    // (3) contacts, in their order: the force acts on the second geom's body, its reaction on the first's; the world
    // body gets none
    for (int k = 0; k < (b ? ncon[0] : 0); ++k) {
      const int c = contact_cand[k], first = contact_efc_address[k];
      const int b1 = m.geom_bodyid()[m.cand_geom1()[c]], b2 = m.geom_bodyid()[m.cand_geom2()[c]];
      if (first < 0 || (b != b1 && b != b2)) continue;
      contact_force(m, k, c, contact_frame, first, efc_force, force, torque);
      force_at(part, force, torque, contact_pos + 3 * k, com);
      for (int i = 0; i < 6; ++i) sum[i] += b == b2 ? part[i] : -part[i];
    }
    if (b && nefc[0]) equality_forces(m, b, eq_active, xpos, xquat, xmat, com, efc_force, sum);
    for (int i = 0; i < 6; ++i) cfrc_ext[6 * b + i] = sum[i];
  }
  lane_sync();
}
