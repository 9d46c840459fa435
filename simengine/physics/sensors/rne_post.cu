// External forces on each body, with constraint forces: the cfrc_ext of MuJoCo's mj_rnePostConstraint.

// (2) force of contact k on the body of its second geom, in the world frame.
DEVICE void contact_force(const Model& m, int k, int c, const real* contact_frame, int first, const real* efc_force,
                          real* out) {
  const real* f = efc_force + first;
  const real* frame = contact_frame + 9 * k;
  real local[3] = {f[0], 0, 0};
  if (m.cand_condim()[c] > 1) {
    local[0] = f[0] + f[1] + f[2] + f[3];
    local[1] = m.cand_friction()[5 * c] * (f[0] - f[1]);
    local[2] = m.cand_friction()[5 * c + 1] * (f[2] - f[3]);
  }
  for (int i = 0; i < 3; ++i) out[i] = frame[i] * local[0] + frame[3 + i] * local[1] + frame[6 + i] * local[2];
}

DEVICE void rne_post(const Model& m, const real* xfrc_applied, const real* xipos, const real* subtree_com,
                     const int* ncon, const real* contact_pos, const real* contact_frame, const int* contact_cand,
                     const int* contact_efc_address, const real* efc_force, real* cfrc_ext) {
  const real zero[3] = {0, 0, 0};
  LANE_FOR(b, m.nbody()) {
    const real* com = subtree_com + 3 * m.body_rootid()[b];
    real sum[6] = {0, 0, 0, 0, 0, 0}, part[6], force[3];
    // (1) applied forces
    if (b) force_at(sum, xfrc_applied + 6 * b, xfrc_applied + 6 * b + 3, xipos + 3 * b, com);
    // (3) contacts, in their order: the force acts on the second geom's body, its reaction on the first's; the world
    // body gets none
    for (int k = 0; k < (b ? ncon[0] : 0); ++k) {
      const int c = contact_cand[k], first = contact_efc_address[k];
      const int b1 = m.geom_bodyid()[m.cand_geom1()[c]], b2 = m.geom_bodyid()[m.cand_geom2()[c]];
      if (first < 0 || (b != b1 && b != b2)) continue;
      contact_force(m, k, c, contact_frame, first, efc_force, force);
      force_at(part, force, zero, contact_pos + 3 * k, com);
      for (int i = 0; i < 6; ++i) sum[i] += b == b2 ? part[i] : -part[i];
    }
    for (int i = 0; i < 6; ++i) cfrc_ext[6 * b + i] = sum[i];
  }
  lane_sync();
}
