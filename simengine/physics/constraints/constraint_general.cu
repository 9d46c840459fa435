// Constraint rows of every type, in MuJoCo's order: equalities, friction losses of dofs and tendons, limits, contacts.
// MuJoCo documentation, "Computation", "Constraint model".

#define FEWEST_EQUALITIES_BY_LANE 8  // of which a lane makes all rows of one

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

// The Jacobian of the rows of an equality of bodies from row r on, by one lane: four columns at a time.
template <class Rows>
DEVICE void put_body_equality(const Model& m, int e, int r, int rows, const Motion& motion, const EqualityFrames& at,
                              const Rows& jacobian) {
  const typename Rows::Dofs dofs = jacobian.dofs(m, m.eq_obj()[2 * e], m.eq_obj()[2 * e + 1]);
  ROLLED for (int c = 0; c < jacobian.stride; c += 4) {
    real column[4][6];
    UNROLLED for (int k = 0; k < 4; ++k) {
      body_equality_column(m, e, motion, dofs.dof(m, c + k), at.p1, at.p2, at.q1, at.q2, column[k]);
    }
    UNROLLED for (int i = 0; i < 6; ++i) {
      if (i >= rows) continue;
      real* to = jacobian.J + size_t(r + i) * jacobian.stride + c;
      *reinterpret_cast<Vec4*>(to) = {column[0][i], column[1][i], column[2][i], column[3][i]};
    }
  }
  ROLLED for (int i = 0; i < 2 * rows; ++i) jacobian.touch(r + i / 2, i % 2, dofs);
}

// (1) rows of the active equalities, from row 0 on; returns their number. Until (4), efc_D holds the distance on which
// their impedance depends, and efc_aref the drift. An equality is the work of one lane, but for the Jacobian of one of
// bodies, which is that of as many lanes as a row has words, or of all lanes, unless there are many.
template <class Rows>
DEVICE int equality_rows(const Model& m, const real* qpos, const int* eq_active, const Motion& motion,
                         const real* ten_length, const real* ten_J, const Rows& jacobian, real* efc_pos, real* efc_D,
                         real* efc_aref, int* efc_type, int* efc_id) {
  real pos[6], drift[6];
  int all = 0;
  bool of_bodies = false;
  const bool many = Rows::BY_CONTACT && m.neq() >= FEWEST_EQUALITIES_BY_LANE;
  ROLLED for (int base = 0; base < m.neq(); base += LANES) {
    const int e = base + lane(), rows = e < m.neq() && eq_active[e] ? m.eq_rows()[e] : 0;
    int total;
    const int r = all + lane_scan(rows, &total);
    all += total;
    if (!rows) continue;
    if (m.eq_type()[e] <= EQ_WELD) {
      of_bodies = !many;
      const EqualityFrames at = equality_frames(m, e, motion);
      body_equality(m, e, motion, at.p1, at.p2, at.q1, at.q2, pos, drift);
      if (many) put_body_equality(m, e, r, rows, motion, at, jacobian);
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
