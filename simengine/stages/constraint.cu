// Constraint rows: limits of joints and tendons, then contacts. MuJoCo documentation, "Computation", "Constraint
// model", and "Modeling", "Solver parameters".

// Impedance d(r) at distance r from the margin: a sigmoid of power solimp[4] between solimp[0] and solimp[1].
DEVICE real impedance(const real* solimp, real r) {
  const real dmin = clamp_(solimp[0], R(0.0001), R(0.9999)), dmax = clamp_(solimp[1], R(0.0001), R(0.9999));
  const real width = max_(R(0.0), solimp[2]), mid = clamp_(solimp[3], R(0.0001), R(0.9999));
  const real power = max_(R(1.0), solimp[4]);
  if (dmin == dmax || width <= MJMINVAL) return R(0.5) * (dmin + dmax);
  const real x = divide_(abs_(r), width);
  if (x >= 1) return dmax;
  if (x == 0) return dmin;
  // x^p / mid^(p-1) up to the middle, its mirror image beyond
  const bool below = x <= mid;
  const real width_of_side = below ? mid : R(1.0) - mid;
  const real share = divide_(below ? x : R(1.0) - x, width_of_side);
  const real rise = width_of_side * (power == 2 ? share * share : power == 1 ? share : pow_(share, power));
  const real y = below ? rise : R(1.0) - rise;
  return fma_(y, dmax - dmin, dmin);
}

// Stiffness and damping of the reference acceleration; a negative solref gives them directly.
DEVICE void stiffness_damping(const real* solref, const real* solimp, real timestep, real* k, real* b) {
  const real dmax = clamp_(solimp[1], R(0.0001), R(0.9999));
  if (solref[0] > 0) {
    const real time = max_(solref[0], 2 * timestep), ratio = solref[1];
    *k = reciprocal_(max_(MJMINVAL, dmax * dmax * time * time * ratio * ratio));
    *b = divide_(R(2.0), max_(MJMINVAL, dmax * time));
  } else {
    *k = -divide_(solref[0], max_(MJMINVAL, dmax * dmax));
    *b = -divide_(solref[1], max_(MJMINVAL, dmax));
  }
}

// Does dof v move body b? Depth-first numbering makes a subtree a range of bodies.
DEVICE bool moves(const Model& m, int v, int b) {
  const int own = m.dof_bodyid()[v];
  return own <= b && b <= m.body_last()[own];
}

// Velocity of a point of body b, in the world frame, per unit velocity of dof v.
DEVICE void point_jacobian(const Model& m, int v, int b, const real* point, const real* subtree_com, const real* cdof,
                           real* out) {
  real arm[3];
  for (int i = 0; i < 3; ++i) arm[i] = point[i] - subtree_com[3 * m.body_rootid()[b] + i];
  cross3(out, cdof + 6 * v, arm);
  for (int i = 0; i < 3; ++i) out[i] += cdof[6 * v + 3 + i];
}

// Jacobian of a limit row: plus or minus the derivative of length `id`; a ball joint's angle grows along its axis.
DEVICE void limit_jacobian(const Model& m, int id, real sign, const real* qpos, int stride, real* row) {
  ROLLED for (int v = 0; v < stride; ++v) row[v] = 0;
  if (id < m.njnt()) {
    real* at = row + m.jnt_dofadr()[id];
    if (m.jnt_type()[id] == JNT_BALL) {
      real axis[3];
      ball_angle(m, id, qpos, axis);
      for (int i = 0; i < 3; ++i) at[i] = -axis[i];
    } else {
      at[0] = sign;
    }
    return;
  }
  const int begin = m.tendon_adr()[id - m.njnt()], end = begin + m.tendon_num()[id - m.njnt()];
  ROLLED for (int k = begin; k < end; ++k) row[m.wrap_dofadr()[k]] = sign * m.wrap_prm()[k];
}

// (1) limit rows: joint by joint, then tendon by tendon, lower side before upper; returns their number.
DEVICE int limit_rows(const Model& m, const real* qpos, int stride, real* efc_J, real* efc_pos, real* efc_margin,
                      int* efc_id) {
  int rows = 0;
  ROLLED for (int base = 0; base < m.nlimit(); base += LANES) {
    const int l = base + lane();
    int active[2] = {0, 0}, id = 0, total;
    Limit limit = {{0, 0}, 0};
    if (l < m.nlimit()) {
      id = m.limit_id()[l];
      limit = limit_of(m, id, qpos);
      for (int side = 0; side < 2; ++side) active[side] = limit.dist[side] < limit.margin;
    }
    int r = rows + lane_scan(active[0] + active[1], &total);
    for (int side = 0; side < 2; ++side) {
      if (!active[side]) continue;
      limit_jacobian(m, id, side == 0 ? R(1.0) : R(-1.0), qpos, stride, efc_J + r * stride);
      efc_pos[r] = limit.dist[side];
      efc_margin[r] = limit.margin;
      efc_id[r] = -1 - (2 * id + side);
      ++r;
    }
    rows += total;
  }
  return rows;
}

// (2) Jacobian of contact k in column v: the normal, and for pyramids the normal plus and minus each friction
// direction.
DEVICE void contact_column(const Model& m, int v, int k, const real* subtree_com, const real* cdof,
                           const real* contact_pos, const real* contact_frame, int c, real* out) {
  const int b1 = m.geom_bodyid()[m.cand_geom1()[c]], b2 = m.geom_bodyid()[m.cand_geom2()[c]];
  real relative[3] = {0, 0, 0}, column[3];
  if (v < m.nv() && moves(m, v, b1)) {
    point_jacobian(m, v, b1, contact_pos + 3 * k, subtree_com, cdof, column);
    for (int i = 0; i < 3; ++i) relative[i] -= column[i];
  }
  if (v < m.nv() && moves(m, v, b2)) {
    point_jacobian(m, v, b2, contact_pos + 3 * k, subtree_com, cdof, column);
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

// (3) rows that exist: where those of each contact go; contacts in the gap have none.
DEVICE void contact_addresses(const Model& m, int rows, int ncon, const real* contact_dist, const int* contact_cand,
                              int* contact_efc_address, real* efc_pos, real* efc_margin, int* efc_id) {
  ROLLED for (int base = 0; base < ncon; base += LANES) {
    const int k = base + lane();
    int number = 0, total;
    real margin = 0;
    if (k < ncon) {
      const int c = contact_cand[k];
      margin = m.cand_margin()[c];
      number = contact_dist[k] < margin ? rows_of(m, c) : 0;
    }
    const int r = rows + lane_scan(number, &total);
    if (k < ncon) contact_efc_address[k] = number ? r : -1;
    ROLLED for (int edge = 0; edge < number; ++edge) {
      efc_pos[r + edge] = contact_dist[k];
      efc_margin[r + edge] = margin;
      efc_id[r + edge] = 4 * k + edge;
    }
    rows += total;
  }
}

// Diagonal approximation of J inv(M) J', solver parameters and friction scale of row r.
DEVICE real row_parameters(const Model& m, int id, const int* contact_cand, const real** solref, const real** solimp) {
  if (id < 0) {
    const int j = (-1 - id) / 2, t = j - m.njnt();
    if (t >= 0) {
      *solref = m.tendon_solref_lim() + 2 * t;
      *solimp = m.tendon_solimp_lim() + 5 * t;
      return m.tendon_invweight0()[t];
    }
    *solref = m.jnt_solref() + 2 * j;
    *solimp = m.jnt_solimp() + 5 * j;
    return m.dof_invweight0()[m.jnt_dofadr()[j]];
  }
  const int c = contact_cand[id / 4];
  *solref = m.cand_solref() + 2 * c;
  *solimp = m.cand_solimp() + 5 * c;
  const int b1 = m.geom_bodyid()[m.cand_geom1()[c]], b2 = m.geom_bodyid()[m.cand_geom2()[c]];
  const real translation = m.body_invweight0()[2 * b1] + m.body_invweight0()[2 * b2];
  const real mu = m.cand_friction()[5 * c];
  return m.cand_condim()[c] == 1 ? translation : translation + mu * mu * translation;
}

// (4) regularisation and reference acceleration of row r.
DEVICE void row_reference(const Model& m, int r, int stride, const real* qvel, const int* contact_cand,
                          const real* efc_J, const real* efc_pos, const real* efc_margin, const int* efc_id,
                          real* efc_D, real* efc_aref) {
  const real *solref, *solimp;
  const int id = efc_id[r];
  const real diagonal = row_parameters(m, id, contact_cand, &solref, &solimp);
  const real from_margin = efc_pos[r] - efc_margin[r], imp = impedance(solimp, from_margin);
  real regularisation = max_(MJMINVAL, divide_((R(1.0) - imp) * diagonal, imp));
  if (id >= 0 && m.cand_condim()[contact_cand[id / 4]] > 1) {
    const real mu = m.cand_friction()[5 * contact_cand[id / 4]];
    regularisation = max_(MJMINVAL, divide_(2 * mu * mu, max_(MJMINVAL, m.opt_impratio()[0])) * regularisation);
  }
  efc_D[r] = reciprocal_(regularisation);
  real velocity = 0, k, b;
  ROLLED for (int v = 0; v < m.nv(); ++v) velocity = fma_(efc_J[r * stride + v], qvel[v], velocity);
  stiffness_damping(solref, solimp, m.opt_timestep()[0], &k, &b);
  efc_aref[r] = -b * velocity - k * imp * from_margin;
}

DEVICE void constraint(const Model& m, const real* qpos, const real* qvel, const real* subtree_com, const real* cdof,
                       const int* ncon, const int* nefc, const real* contact_dist, const real* contact_pos,
                       const real* contact_frame, const int* contact_cand, int* contact_efc_address, real* efc_J,
                       real* efc_pos, real* efc_margin, real* efc_D, real* efc_aref, int* efc_id) {
  const int stride = m.nvp();
  const int limits = limit_rows(m, qpos, stride, efc_J, efc_pos, efc_margin, efc_id);
  contact_addresses(m, limits, ncon[0], contact_dist, contact_cand, contact_efc_address, efc_pos, efc_margin, efc_id);
  lane_sync();
  LANE_FOR(e, ncon[0] * stride) {
    const int k = e / stride, v = e % stride, c = contact_cand[k], first = contact_efc_address[k];
    if (first < 0) continue;
    real column[4];
    contact_column(m, v, k, subtree_com, cdof, contact_pos, contact_frame, c, column);
    ROLLED for (int edge = 0; edge < rows_of(m, c); ++edge) efc_J[(first + edge) * stride + v] = column[edge];
  }
  lane_sync();
  LANE_FOR(r, nefc[0]) {
    row_reference(m, r, stride, qvel, contact_cand, efc_J, efc_pos, efc_margin, efc_id, efc_D, efc_aref);
  }
  lane_sync();
}
