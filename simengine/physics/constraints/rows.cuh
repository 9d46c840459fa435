// Functions shared by the stages that make constraint rows: MuJoCo documentation, "Computation", "Constraint model",
// and "Modeling", "Solver parameters".
#pragma once

// Impedance d(r) at distance r from the margin: a sigmoid of power solimp[4] between solimp[0] and solimp[1].
DEVICE real impedance(const real* solimp, real r) {
  const real dmin = clamp_(solimp[0], R(0.0001), R(0.9999)), dmax = clamp_(solimp[1], R(0.0001), R(0.9999));
  const real width = max_(R(0.0), solimp[2]), mid = clamp_(solimp[3], R(0.0001), R(0.9999));
  const real power = max_(R(1.0), solimp[4]);
  if (dmin == dmax || width <= MJMINVAL) return R(0.5) * (dmin + dmax);
  const real x = divide_(abs_(r), width);
  if (x >= 1) return dmax;
  if (x == 0) return dmin;
  // x^p / mid^(p-1) up to the midpoint, and its point reflection beyond
  const bool below = x <= mid;
  const real width_of_side = below ? mid : R(1.0) - mid;
  const real share = divide_(below ? x : R(1.0) - x, width_of_side);
  const real rise = width_of_side * (power == 2 ? share * share : power == 1 ? share : pow_(share, power));
  const real y = below ? rise : R(1.0) - rise;
  return fma_(y, dmax - dmin, dmin);
}

// Stiffness k and damping b of the reference acceleration, with a time constant of at least `least`. A negative solref
// gives them directly. MuJoCo takes its default for one of which only one number is positive.
DEVICE void stiffness_damping(const real* solref, const real* solimp, real least, real* k, real* b) {
  const real dmax = clamp_(solimp[1], R(0.0001), R(0.9999));
  const bool mixed = (solref[0] > 0) != (solref[1] > 0);
  if (mixed || solref[0] > 0) {
    const real time = max_(mixed ? R(0.02) : solref[0], least), ratio = mixed ? R(1.0) : solref[1];
    *k = reciprocal_(max_(MJMINVAL, dmax * dmax * time * time * ratio * ratio));
    *b = divide_(R(2.0), max_(MJMINVAL, dmax * time));
  } else {
    *k = -divide_(solref[0], max_(MJMINVAL, dmax * dmax));
    *b = -divide_(solref[1], max_(MJMINVAL, dmax));
  }
}

// Mean inverse inertia of body b along a line. Bodies that only turn about their centre of mass have none, and MuJoCo
// takes MJMINVAL. In float32 forces as large as follow from it would not cancel.
DEVICE real translation_weight(const Model& m, int b) {
  const bool is_double = REAL_EPS < R(1e-10);
  const real* weight = m.body_invweight0() + 2 * b;
  return is_double ? weight[0] : max_(weight[0], m.body_leastweight()[b] * weight[1]);
}

// Regularisation of an edge of a pyramid relative to that of a contact without friction. MuJoCo makes the edges of
// hardly any friction so hard that a solver finds no optimum in float32, where they have at least LEAST_SHARE of
// model/rows.py.
DEVICE real pyramid_share(const Model& m, real friction) {
  const bool is_double = REAL_EPS < R(1e-10);
  const real share = divide_(2 * friction * friction, max_(MJMINVAL, m.opt_impratio()[0]));
  return is_double ? share : max_(share, R(2e-4));
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

// What the columns of a contact's rows share: its bodies, and its point relative to the centre of mass of their trees.
struct ContactSides {
  int body[2];
  real arm[2][3];
};

DEVICE ContactSides contact_sides(const Model& m, int c, const real* point, const real* subtree_com) {
  ContactSides sides;
  for (int side = 0; side < 2; ++side) {
    const int b = m.geom_bodyid()[side ? m.cand_geom2()[c] : m.cand_geom1()[c]];
    sides.body[side] = b;
    for (int i = 0; i < 3; ++i) sides.arm[side][i] = point[i] - subtree_com[3 * m.body_rootid()[b] + i];
  }
  return sides;
}

// point_jacobian of the point of a contact on one of its bodies.
DEVICE void side_jacobian(int v, const real* arm, const real* cdof, real* out) {
  cross3(out, cdof + 6 * v, arm);
  for (int i = 0; i < 3; ++i) out[i] += cdof[6 * v + 3 + i];
}

// Add to `row` scale times the derivative of length `id` with respect to the velocities. Without `ten_J`, no tendon may
// be spatial. A tendon depends on dofs of one block only.
DEVICE void add_length_jacobian(const Model& m, int id, real scale, real* row, const real* ten_J = 0) {
  if (id < m.njnt()) {
    row[m.jnt_dofadr()[id]] += scale;
    return;
  }
  const int t = id - m.njnt(), begin = m.tendon_adr()[t], end = begin + m.tendon_num()[t];
  ROLLED for (int k = begin; k < end; ++k) row[m.wrap_dofadr()[k]] += scale * m.wrap_prm()[k];
  if (!ten_J || !m.tendon_pathnum()[t]) return;
  const int block = m.dof_block()[m.tendon_dof()[t]], last = m.block_dofadr()[block + 1];
  ROLLED for (int v = m.block_dofadr()[block]; v < last; ++v) row[v] = fma_(scale, ten_J[t * m.nv() + v], row[v]);
}

// Jacobian of a limit row: plus or minus the derivative of length `id`, which for a ball joint is its rotation axis.
template <class Rows>
DEVICE void limit_jacobian(const Model& m, int id, real sign, const real* qpos, const real* ten_J, const Rows& jacobian,
                           int r) {
  real* row = jacobian.start(m, r, length_dof(m, id), -1).first;
  if (id >= m.njnt() || m.jnt_type()[id] != JNT_BALL) {
    add_length_jacobian(m, id, sign, row, ten_J);
    return;
  }
  real axis[3];
  ball_angle(m, id, qpos, axis);
  for (int i = 0; i < 3; ++i) row[m.jnt_dofadr()[id] + i] = -axis[i];
}

// Limit rows from row `rows` on: joints, then tendons, lower side before upper; returns the index after the last.
template <class Rows>
DEVICE int limit_rows(const Model& m, int rows, const real* qpos, const real* ten_length, const real* ten_J,
                      const Rows& jacobian, real* efc_pos, real* efc_margin, int* efc_type, int* efc_id) {
  ROLLED for (int base = 0; base < m.nlimit(); base += LANES) {
    const int l = base + lane();
    int active[2] = {0, 0}, id = 0, total;
    Limit limit = {{0, 0}, 0};
    if (l < m.nlimit()) {
      id = m.limit_id()[l];
      limit = limit_of(m, id, qpos, ten_length);
      for (int side = 0; side < 2; ++side) active[side] = limit.dist[side] < limit.margin;
    }
    int r = rows + lane_scan(active[0] + active[1], &total);
    for (int side = 0; side < 2; ++side) {
      if (!active[side]) continue;
      limit_jacobian(m, id, side == 0 ? R(1.0) : R(-1.0), qpos, ten_J, jacobian, r);
      efc_pos[r] = limit.dist[side];
      efc_margin[r] = limit.margin;
      efc_type[r] = id < m.njnt() ? ROW_LIMIT_JOINT : ROW_LIMIT_TENDON;
      efc_id[r] = id < m.njnt() ? id : id - m.njnt();
      ++r;
    }
    rows += total;
  }
  return rows;
}

// Address, position, margin, type and id of the rows of each contact, from row `rows` on. Contacts in the gap have
// none. CONES says whether contacts may have elliptic cones, whose tangents have position zero.
template <bool CONES>
DEVICE void contact_addresses(const Model& m, int rows, int ncon, const real* contact_dist, const int* contact_cand,
                              int* contact_efc_address, real* efc_pos, real* efc_margin, int* efc_type, int* efc_id) {
  const bool cone = CONES && m.opt_cone() == CONE_ELLIPTIC;
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
      efc_pos[r + edge] = cone && edge ? R(0.0) : contact_dist[k];
      efc_margin[r + edge] = cone && edge ? R(0.0) : margin;
      efc_type[r + edge] = number == 1 ? ROW_CONTACT_FRICTIONLESS
                           : cone      ? ROW_CONTACT_ELLIPTIC
                                       : ROW_CONTACT_PYRAMIDAL;
      efc_id[r + edge] = k;
    }
    rows += total;
  }
}
