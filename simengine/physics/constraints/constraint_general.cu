// Constraint rows of every type, in MuJoCo's order: equalities, friction losses of dofs and tendons, limits, contacts.
// MuJoCo documentation, "Computation", "Constraint model".

// Store what belongs to the rows of equality e from row r on, besides their Jacobian.
DEVICE void put_equality(int e, int r, int rows, const real* pos, const real* drift, real* efc_pos, real* efc_D,
                         real* efc_aref, int* efc_type, int* efc_id) {
  real distance2 = 0;
  for (int i = 0; i < 6; ++i) distance2 = i < rows ? fma_(pos[i], pos[i], distance2) : distance2;
  for (int i = 0; i < 6; ++i) {
    if (i >= rows) continue;
    efc_pos[r + i] = pos[i];
    efc_D[r + i] = sqrt_(distance2);
    efc_aref[r + i] = drift[i];
    efc_type[r + i] = ROW_EQUALITY;
    efc_id[r + i] = e;
  }
}

// (1) rows of the active equalities, from row 0 on; returns their number. Until (4), efc_D holds the distance on which
// their impedance depends, and efc_aref the drift. An equality is the work of one lane, but for the Jacobian of one of
// bodies, which is that of as many lanes as a row has words, or of all lanes.
template <class Rows>
DEVICE int equality_rows(const Model& m, const real* qpos, const int* eq_active, const Motion& motion,
                         const real* ten_length, const real* ten_J, const Rows& jacobian, real* efc_pos, real* efc_D,
                         real* efc_aref, int* efc_type, int* efc_id) {
  real pos[6], drift[6];
  int all = 0;
  bool of_bodies = false;
  ROLLED for (int base = 0; base < m.neq(); base += LANES) {
    const int e = base + lane(), rows = e < m.neq() && eq_active[e] ? m.eq_rows()[e] : 0;
    int total;
    const int r = all + lane_scan(rows, &total);
    all += total;
    if (!rows) continue;
    if (m.eq_type()[e] <= EQ_WELD) {
      of_bodies = true;
      const EqualityFrames at = equality_frames(m, e, motion);
      body_equality(m, e, motion, at.p1, at.p2, at.q1, at.q2, pos, drift);
    } else {
      drift[0] = 0;
      pos[0] = length_equality(m, e, qpos, ten_length, ten_J, jacobian, r);
    }
    put_equality(e, r, rows, pos, drift, efc_pos, efc_D, efc_aref, efc_type, efc_id);
  }
  if (!lane_any(of_bodies)) return all;
  int r = 0, width = 1;
  ROLLED while (width < LANES && width < jacobian.stride) width *= 2;
  const int at_once = LANES / width, group = lane() / width;
  ROLLED for (int first = 0; first < m.neq(); first += at_once) {
    const int e = first + group;
    int own = 0, rows = 0;
    ROLLED for (int k = 0; k < at_once && first + k < m.neq(); ++k) {
      const int of_this = eq_active[first + k] ? m.eq_rows()[first + k] : 0;
      own = k == group ? r : own, rows = k == group ? of_this : rows;
      r += of_this;
    }
    if (!rows || m.eq_type()[e] > EQ_WELD) continue;
    const EqualityFrames at = equality_frames(m, e, motion);
    real column[6];
    const typename Rows::Dofs dofs = jacobian.dofs(m, m.eq_obj()[2 * e], m.eq_obj()[2 * e + 1]);
    ROLLED for (int c = lane() % width; c < jacobian.stride; c += width) {
      body_equality_column(m, e, motion, dofs.dof(m, c), at.p1, at.p2, at.q1, at.q2, column);
      for (int i = 0; i < 6; ++i) {
        if (i >= rows) continue;
        jacobian.J[size_t(own + i) * jacobian.stride + c] = column[i];
        jacobian.touch(own + i, c, dofs);
      }
    }
  }
  return all;
}

// (1) rows of friction losses, from row `rows` on; returns the index after the last.
template <class Rows>
DEVICE int friction_rows(const Model& m, int rows, const real* ten_J, const Rows& jacobian, real* efc_pos,
                         int* efc_type, int* efc_id) {
  LANE_FOR(f, m.nfriction()) {
    const int r = rows + f, id = m.friction_id()[f], t = id - m.nv();
    real* row = jacobian.start(m, r, t >= 0 ? length_dof(m, m.njnt() + t) : id, -1).first;
    if (t >= 0) {
      add_length_jacobian(m, m.njnt() + t, R(1.0), row, ten_J);
    } else {
      row[id] = 1;
    }
    efc_pos[r] = 0;
    efc_type[r] = t >= 0 ? ROW_FRICTION_TENDON : ROW_FRICTION_DOF;
    efc_id[r] = t >= 0 ? t : id;
  }
  return rows + m.nfriction();
}

struct RowParameters {
  const real *solref, *solimp;
  real diagonal;  // approximate diagonal entry of J inv(M) J'
};

// Solver parameters of row `sub` of an equality constraint.
DEVICE RowParameters equality_parameters(const Model& m, int e, int sub) {
  const int type = m.eq_type()[e], id1 = m.eq_obj()[2 * e], id2 = m.eq_obj()[2 * e + 1];
  real diagonal = 0;
  if (type <= EQ_WELD) {
    diagonal = sub < 3 ? translation_weight(m, id1) + translation_weight(m, id2)
                       : m.body_invweight0()[2 * id1 + 1] + m.body_invweight0()[2 * id2 + 1];
  } else if (type == EQ_TENDON) {
    diagonal = m.tendon_invweight0()[id1] + (id2 >= 0 ? m.tendon_invweight0()[id2] : R(0.0));
  } else {
    const real* invweight = m.dof_invweight0();
    diagonal = invweight[m.jnt_dofadr()[id1]] + (id2 >= 0 ? invweight[m.jnt_dofadr()[id2]] : R(0.0));
  }
  return {m.eq_solref() + 2 * e, m.eq_solimp() + 5 * e, diagonal};
}

// Does solreffriction hold for the tangents? Zeros stand for solref, and so does one of which only one number is
// positive.
DEVICE bool has_solref(const real* custom) {
  return (custom[0] > 0) == (custom[1] > 0) && (custom[0] != 0 || custom[1] != 0);
}

// Solver parameters of row `sub` of a contact of pair c.
DEVICE RowParameters contact_parameters(const Model& m, int c, int type, int sub) {
  const int b1 = m.geom_bodyid()[m.cand_geom1()[c]], b2 = m.geom_bodyid()[m.cand_geom2()[c]];
  const real *custom = m.cand_solreffriction() + 2 * c, mu = m.cand_friction()[5 * c];
  const bool tangent = in_cone(type) && sub > 0 && has_solref(custom);
  const real translation = translation_weight(m, b1) + translation_weight(m, b2);
  const real diagonal = type == ROW_CONTACT_PYRAMIDAL ? translation + mu * mu * translation : translation;
  return {tangent ? custom : m.cand_solref() + 2 * c, m.cand_solimp() + 5 * c, diagonal};
}

DEVICE RowParameters row_parameters(const Model& m, int type, int id, int sub, const int* contact_cand) {
  switch (type) {
    case ROW_EQUALITY: return equality_parameters(m, id, sub);
    case ROW_FRICTION_DOF: return {m.dof_solref() + 2 * id, m.dof_solimp() + 5 * id, m.dof_invweight0()[id]};
    case ROW_FRICTION_TENDON:
      return {m.tendon_solref_fri() + 2 * id, m.tendon_solimp_fri() + 5 * id, m.tendon_invweight0()[id]};
    case ROW_LIMIT_JOINT:
      return {m.jnt_solref() + 2 * id, m.jnt_solimp() + 5 * id, m.dof_invweight0()[m.jnt_dofadr()[id]]};
    case ROW_LIMIT_TENDON:
      return {m.tendon_solref_lim() + 2 * id, m.tendon_solimp_lim() + 5 * id, m.tendon_invweight0()[id]};
    default: return contact_parameters(m, contact_cand[id], type, sub);
  }
}

// Regularisation of a contact's row relative to that of the normal. All edges of a pyramid have the regularisation of
// the cone with the same friction. The tangents of a cone have equal ones in units of their friction.
DEVICE real contact_share(const Model& m, int c, int type, int sub) {
  const real* friction = m.cand_friction() + 5 * c;
  if (type == ROW_CONTACT_PYRAMIDAL) return pyramid_share(m, friction[0]);
  const real impratio = max_(MJMINVAL, m.opt_impratio()[0]), first2 = friction[0] * friction[0];
  if (!in_cone(type) || sub == 0) return 1;
  return divide_(first2, impratio * friction[sub - 1] * friction[sub - 1]);
}

struct RowConstants {
  real D, impedance, stiffness, damping;
};

// Those of a row at a distance, whose regularisation relative to that of a contact's normal is `share`.
DEVICE RowConstants row_constants(const Model& m, const RowParameters& p, real distance, real share) {
  RowConstants found;
  found.impedance = impedance(p.solimp, distance);
  const real loose = divide_((R(1.0) - found.impedance) * p.diagonal, found.impedance);
  found.D = reciprocal_(max_(MJMINVAL, loose) * share);
  stiffness_damping(p.solref, p.solimp, m.opt_leastref()[0], &found.stiffness, &found.damping);
  return found;
}

// Blocks, regularisation and reference acceleration of the rows of contact k from row `first` on, by one lane: the edges
// of a pyramid have the same constants.
template <class Rows>
DEVICE void finish_contact(const Model& m, const Rows& jacobian, int k, int first, const real* qvel,
                           const real* contact_dist, const int* contact_cand, const int* efc_type, real* efc_D,
                           real* efc_aref, real* efc_frictionloss) {
  const int cand = contact_cand[k], rows = rows_of(m, cand), type = efc_type[first];
  const int body1 = m.geom_bodyid()[m.cand_geom1()[cand]], body2 = m.geom_bodyid()[m.cand_geom2()[cand]];
  const typename Rows::Dofs dofs = jacobian.dofs(m, body1, body2);
  const real distance = contact_dist[k] - m.cand_margin()[cand];
  const int width = jacobian.width(m, dofs);
  RowConstants constants;
  ROLLED for (int sub = 0; sub < rows; ++sub) {
    const int r = first + sub;
    const real from_margin = in_cone(type) && sub ? R(0.0) : distance;
    if (!sub || type != ROW_CONTACT_PYRAMIDAL) {
      const RowParameters p = contact_parameters(m, cand, type, sub);
      constants = row_constants(m, p, distance, contact_share(m, cand, type, sub));
    }
    const real velocity = RowVelocities::sum(m, dofs, width, jacobian.J + size_t(r) * jacobian.stride, qvel);
    efc_D[r] = constants.D;
    efc_aref[r] = -constants.damping * velocity - constants.stiffness * constants.impedance * from_margin;
    efc_frictionloss[r] = 0;
    jacobian.touch(r, 0, dofs);
    jacobian.touch(r, 1, dofs);
  }
}

// All rows of a world; `jacobian` says how their Jacobian is stored.
template <class Rows>
DEVICE void every_row(const Model& m, const real* qpos, const real* qvel, const int* eq_active, const real* xpos,
                       const real* xquat, const real* xmat, const real* subtree_com, const real* cdof,
                       const real* cvel, const real* cdof_dot, const real* ten_length, const real* ten_J,
                       const int* ncon, const int* nefc, const real* contact_dist, const real* contact_pos,
                       const real* contact_frame, const int* contact_cand, int* contact_efc_address,
                       const Rows& jacobian, real* efc_pos,
                       real* efc_margin, real* efc_D, real* efc_aref, int* efc_type, int* efc_id,
                       real* efc_frictionloss, real* contacts) {
  const int stride = jacobian.stride;
  const Motion motion = {xpos, xquat, xmat, subtree_com, cdof, cvel, cdof_dot, qvel};
  const int equalities = equality_rows(m, qpos, eq_active, motion, ten_length, ten_J, jacobian, efc_pos, efc_D,
                                       efc_aref, efc_type, efc_id);
  const int frictions = friction_rows(m, equalities, ten_J, jacobian, efc_pos, efc_type, efc_id);
  LANE_FOR(r, frictions) efc_margin[r] = 0;
  const int limits = limit_rows(m, frictions, qpos, ten_length, ten_J, jacobian, efc_pos, efc_margin, efc_type, efc_id);
  // (3) rows that exist
  contact_addresses<HAS_CONES>(m, limits, ncon[0], contact_dist, contact_cand, contact_efc_address, efc_pos, efc_margin,
                          efc_type, efc_id);
  lane_sync();
#if LANES == 1 && !SIMENGINE_GPU
  for (int k = 0; k < ncon[0]; ++k) {
    const int cand = contact_cand[k], first = contact_efc_address[k];
    if (first < 0) continue;
    contact_rows(m, jacobian, k, cand, first, contact_pos, contact_frame, subtree_com, cdof);
  }
#else
  // (2) Jacobians of contacts
  ROLLED for (int base = 0; base < ncon[0]; base += CONTACTS_AT_ONCE) {
    const int left = ncon[0] - base, number = left < CONTACTS_AT_ONCE ? left : CONTACTS_AT_ONCE;
    LANE_FOR(k, number) {
      put_contact(m, base + k, contact_cand[base + k], contact_efc_address[base + k], contact_pos, contact_frame,
                  subtree_com, contacts + CONTACT_WORDS * k);
    }
    lane_sync();
    LANE_FOR_TABLE(k, number, column, stride, const real* contact = contacts + CONTACT_WORDS * k) {
      const int* of_contact = reinterpret_cast<const int*>(contact + CONTACT_NUMBERS);
      const int first = of_contact[2];
      if (first < 0) continue;
      const typename Rows::Dofs dofs = dofs_of_contact(m, jacobian, contact);
      contact_columns(m, dofs.dof(m, column), contact, cdof, stride, jacobian.J + size_t(first) * stride + column);
      if (Rows::BY_CONTACT) continue;
      ROLLED for (int i = 0; i < of_contact[3] >> 4; ++i) jacobian.touch(first + i, column, dofs);
    }
    lane_sync();
  }
#endif
  lane_sync();
  // (4) regularisation and reference acceleration
  RowConstants constants = {0, 0, 0, 0};
  RowVelocities velocities;
#if SIMENGINE_GPU
  LANE_FOR(k, Rows::BY_CONTACT ? ncon[0] : 0) {
    const int first = contact_efc_address[k];
    if (first < 0) continue;
    finish_contact(m, jacobian, k, first, qvel, contact_dist, contact_cand, efc_type, efc_D, efc_aref,
                   efc_frictionloss);
  }
#endif
  LANE_FOR(r, Rows::BY_CONTACT ? limits : nefc[0]) {
    const int type = efc_type[r], id = efc_id[r];
    const bool contact = r >= limits, equality = type == ROW_EQUALITY;
    int sub = 0;
    if (contact) sub = r - contact_efc_address[id];
    if (equality) {
      while (sub < 5 && r > sub && efc_id[r - sub - 1] == id) ++sub;
    }
    const real from_margin = efc_pos[r] - efc_margin[r], drift = equality ? efc_aref[r] : R(0.0);
    // the edges of a pyramid have the same constants, which a single lane computes with the first
    if (LANES > 1 || type != ROW_CONTACT_PYRAMIDAL || sub == 0) {
      const real distance = equality  ? efc_D[r]
                            : contact ? contact_dist[id] - m.cand_margin()[contact_cand[id]]
                                      : from_margin;
      const RowParameters p = row_parameters(m, type, id, sub, contact_cand);
      constants = row_constants(m, p, distance, contact ? contact_share(m, contact_cand[id], type, sub) : R(1.0));
    }
    const int together = contact ? rows_of(m, contact_cand[id]) : 1;
    const real velocity = velocities.of(m, jacobian, r, type, id, sub, together, qvel);
    efc_D[r] = constants.D;
    efc_aref[r] = -constants.damping * velocity - constants.stiffness * constants.impedance * from_margin - drift;
    efc_frictionloss[r] = type == ROW_FRICTION_DOF      ? m.dof_frictionloss()[id]
                          : type == ROW_FRICTION_TENDON ? m.tendon_frictionloss()[id]
                                                        : R(0.0);
  }
  lane_sync();
}

DEVICE void constraint_general(const Model& m, const real* qpos, const real* qvel, const int* eq_active,
                               const real* xpos, const real* xquat, const real* xmat, const real* subtree_com,
                               const real* cdof, const real* cvel, const real* cdof_dot, const real* ten_length,
                               const real* ten_J, const int* ncon, const int* nefc, const real* contact_dist,
                               const real* contact_pos, const real* contact_frame, const int* contact_cand,
                               int* contact_efc_address, real* efc_J, real* efc_pos, real* efc_margin, real* efc_D,
                               real* efc_aref, int* efc_type, int* efc_id, real* efc_frictionloss,
                               real* contacts) {
  every_row(m, qpos, qvel, eq_active, xpos, xquat, xmat, subtree_com, cdof, cvel, cdof_dot, ten_length, ten_J, ncon,
            nefc, contact_dist, contact_pos, contact_frame, contact_cand, contact_efc_address,
            DenseRows{efc_J, m.nvp()}, efc_pos, efc_margin, efc_D, efc_aref, efc_type, efc_id, efc_frictionloss,
            contacts);
}
