// Solver parameters of constraint rows, and what follows from them: regularisation, and the constants of the reference
// acceleration. MuJoCo documentation, "Modeling", "Solver parameters".
#pragma once

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

// Blocks, regularisation and reference acceleration of the rows of contact k from row `first` on, by one lane. Edges
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
