// Constraint rows of models that have only limits of joints and tendons, and contacts that are frictionless or have
// pyramids of dimension 3. `constraint_general` makes rows of every type.

// (2) Jacobian of contact k in column v: along the normal or, for a pyramid, along the normal plus and minus each
// friction direction.
DEVICE void contact_column(const Model& m, int v, int k, const ContactSides& sides, const real* cdof,
                           const real* contact_frame, int c, real* out) {
  real relative[3] = {0, 0, 0}, column[3];
  if (v < m.nv() && moves(m, v, sides.body[0])) {
    side_jacobian(v, sides.arm[0], cdof, column);
    for (int i = 0; i < 3; ++i) relative[i] -= column[i];
  }
  if (v < m.nv() && moves(m, v, sides.body[1])) {
    side_jacobian(v, sides.arm[1], cdof, column);
    for (int i = 0; i < 3; ++i) relative[i] += column[i];
  }
  const real* frame = contact_frame + 9 * k;
  const real normal = dot3(frame, relative);
  if (m.cand_condim()[c] == 1) {
    out[0] = normal;
    return;
  }
  const real tangent1 = m.cand_friction()[5 * c] * dot3(frame + 3, relative);
  const real tangent2 = m.cand_friction()[5 * c + 1] * dot3(frame + 6, relative);
  out[0] = normal + tangent1;
  out[1] = normal - tangent1;
  out[2] = normal + tangent2;
  out[3] = normal - tangent2;
}

// Solver parameters of a row; returns the approximate diagonal entry of J inv(M) J'.
DEVICE real row_parameters(const Model& m, int type, int id, const int* contact_cand, const real** solref,
                           const real** solimp) {
  if (type == ROW_LIMIT_TENDON) {
    *solref = m.tendon_solref_lim() + 2 * id;
    *solimp = m.tendon_solimp_lim() + 5 * id;
    return m.tendon_invweight0()[id];
  }
  if (type == ROW_LIMIT_JOINT) {
    *solref = m.jnt_solref() + 2 * id;
    *solimp = m.jnt_solimp() + 5 * id;
    return m.dof_invweight0()[m.jnt_dofadr()[id]];
  }
  const int c = contact_cand[id];
  *solref = m.cand_solref() + 2 * c;
  *solimp = m.cand_solimp() + 5 * c;
  const int b1 = m.geom_bodyid()[m.cand_geom1()[c]], b2 = m.geom_bodyid()[m.cand_geom2()[c]];
  const real translation = translation_weight(m, b1) + translation_weight(m, b2);
  const real mu = m.cand_friction()[5 * c];
  return m.cand_condim()[c] == 1 ? translation : translation + mu * mu * translation;
}

// (4) regularisation and reference acceleration of row r, which moves with `velocity`.
DEVICE void row_reference(const Model& m, int r, real velocity, const int* contact_cand, const real* efc_pos,
                          const real* efc_margin, const int* efc_type, const int* efc_id, real* efc_D,
                          real* efc_aref) {
  const real *solref, *solimp;
  const int type = efc_type[r], id = efc_id[r];
  const real diagonal = row_parameters(m, type, id, contact_cand, &solref, &solimp);
  const real from_margin = efc_pos[r] - efc_margin[r], imp = impedance(solimp, from_margin);
  real regularisation = max_(MJMINVAL, divide_((R(1.0) - imp) * diagonal, imp));
  if (type == ROW_CONTACT_PYRAMIDAL) {
    const real mu = m.cand_friction()[5 * contact_cand[id]];
    regularisation *= pyramid_share(m, mu);
  }
  efc_D[r] = reciprocal_(regularisation);
  real k, b;
  stiffness_damping(solref, solimp, m.opt_leastref()[0], &k, &b);
  efc_aref[r] = -b * velocity - k * imp * from_margin;
}

DEVICE void constraint(const Model& m, const real* qpos, const real* qvel, const real* subtree_com, const real* cdof,
                       const int* ncon, const int* nefc, const real* contact_dist, const real* contact_pos,
                       const real* contact_frame, const int* contact_cand, int* contact_efc_address, real* efc_J,
                       real* efc_pos, real* efc_margin, real* efc_D, real* efc_aref, int* efc_type, int* efc_id) {
  const int stride = m.nvp();
  // (1) limits
  const int limits = limit_rows(m, 0, qpos, 0, 0, DenseRows{efc_J, stride}, efc_pos, efc_margin, efc_type, efc_id);
  // (3) rows that exist
  contact_addresses<false>(m, limits, ncon[0], contact_dist, contact_cand, contact_efc_address, efc_pos, efc_margin,
                           efc_type, efc_id);
  lane_sync();
#if LANES == 1 && !SIMENGINE_GPU
  for (int k = 0; k < ncon[0]; ++k) {
    const int c = contact_cand[k], first = contact_efc_address[k];
    if (first < 0) continue;
    contact_rows(m, DenseRows{efc_J, stride}, k, c, first, contact_pos, contact_frame, subtree_com, cdof);
  }
#else
  LANE_FOR_TABLE(k, ncon[0], v, stride,
                 const ContactSides sides = contact_sides(m, contact_cand[k], contact_pos + 3 * k, subtree_com)) {
    const int c = contact_cand[k], first = contact_efc_address[k];
    if (first < 0) continue;
    real column[4];
    contact_column(m, v, k, sides, cdof, contact_frame, c, column);
    ROLLED for (int edge = 0; edge < rows_of(m, c); ++edge) efc_J[(first + edge) * stride + v] = column[edge];
  }
#endif
  lane_sync();
  RowVelocities velocities;
  LANE_FOR(r, nefc[0]) {
    const int type = efc_type[r], id = efc_id[r];
    const bool contact = r >= limits;
    const int sub = contact ? r - contact_efc_address[id] : 0, together = contact ? rows_of(m, contact_cand[id]) : 1;
    const real velocity = velocities.of(m, DenseRows{efc_J, stride}, r, type, id, sub, together, qvel);
    row_reference(m, r, velocity, contact_cand, efc_pos, efc_margin, efc_type, efc_id, efc_D, efc_aref);
  }
  lane_sync();
}
