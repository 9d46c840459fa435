// Forces of spatial tendons on the bodies along their paths. MuJoCo counts them among the external forces on bodies,
// whether they come from springs and dampers, from actuators or from constraint rows.

// Force along tendon t that constraint row r exerts.
DEVICE real row_pull(const Model& m, int t, int r, const real* ten_length, const real* efc_pos, const int* efc_type,
                     const int* efc_id, const real* efc_force) {
  const int type = efc_type[r], id = efc_id[r];
  if (type == ROW_FRICTION_TENDON) return id == t ? efc_force[r] : R(0.0);
  if (type == ROW_LIMIT_TENDON) {
    if (id != t) return 0;
    // is it the upper side's row? it comes second, or efc_pos matches the distance to the upper bound
    const real* range = m.tendon_range() + 2 * t;
    const real lower = abs_(efc_pos[r] - (ten_length[t] - range[0]));
    const real upper = abs_(efc_pos[r] - (range[1] - ten_length[t]));
    const bool second = r > 0 && efc_type[r - 1] == type && efc_id[r - 1] == id;
    return second || upper < lower ? -efc_force[r] : efc_force[r];
  }
  if (type != ROW_EQUALITY || m.eq_type()[id] != EQ_TENDON) return 0;
  if (m.eq_obj()[2 * id] == t) return efc_force[r];
  if (m.eq_obj()[2 * id + 1] != t) return 0;
  const real *c = m.eq_data() + 12 * id, x = ten_length[t] - m.tendon_length0()[t];
  return -fma_(x, fma_(x, fma_(x, 4 * c[4], 3 * c[3]), 2 * c[2]), c[1]) * efc_force[r];
}

DEVICE void tendon_forces(const Model& m, const real* xpos, const real* xquat, const real* subtree_com,
                          const real* geom_xpos, const real* geom_xmat, const real* ten_length,
                          const real* ten_velocity, const real* actuator_force, const int* nefc, const real* efc_pos,
                          const int* efc_type, const int* efc_id, const real* efc_force, real* cfrc_ext, real* pieces,
                          real* pull) {
  // (1) pieces of spatial tendons
  LANE_FOR(p, m.npath()) {
    tendon_piece(m, p, xpos, xquat, subtree_com, geom_xpos, geom_xmat, pieces + PIECE_WORDS * p);
  }
  // (2) force along each tendon, from springs and dampers, actuators and constraint rows
  LANE_FOR(t, m.ntendon()) {
    if (!m.tendon_pathnum()[t]) continue;
    real force = tendon_pull(m, t, ten_length[t], ten_velocity[t]);
    ROLLED for (int u = 0; u < m.nu(); ++u) {
      const bool pulls = m.actuator_trntype()[u] == TRN_TENDON && m.actuator_trnid()[2 * u] == t;
      if (pulls) force = fma_(m.actuator_gear()[6 * u], actuator_force[u], force);
    }
    ROLLED for (int r = 0; r < nefc[0]; ++r) {
      force += row_pull(m, t, r, ten_length, efc_pos, efc_type, efc_id, efc_force);
    }
    pull[t] = force;
  }
  lane_sync();
  // (3) force vectors on all bodies except the world body
  LANE_FOR(e, 6 * m.nbody()) {
    const int b = e / 6, i = e % 6;
    if (b == 0) continue;
    real sum = cfrc_ext[e];
    ROLLED for (int p = 0; p < m.npath(); ++p) {
      const real force = m.path_scale()[p] * pull[m.path_tenid()[p]], *piece = pieces + PIECE_WORDS * p;
      const int g = m.path_geom()[p];
      if (m.site_bodyid()[m.path_site()[2 * p]] == b) sum = fma_(force, piece[1 + i], sum);
      if (m.site_bodyid()[m.path_site()[2 * p + 1]] == b) sum = fma_(force, piece[7 + i], sum);
      if (g >= 0 && m.geom_bodyid()[g] == b) sum = fma_(force, piece[13 + i], sum);
    }
    cfrc_ext[e] = sum;
  }
  lane_sync();
}
