// Lengths of the tendons and their Jacobians: MuJoCo documentation, "XML Reference", "tendon/spatial" and
// "tendon/fixed". A spatial tendon is a sequence of pieces, each from one site to the next, some past a geom. The
// gradient of a piece's length is a force vector on each of two or three bodies. The derivative of the length with
// respect to a dof is the dot product of the dof's motion axis with the force vectors on the bodies that the dof moves.
// Other entries of the Jacobian are zero from the start, and nobody writes them.

#define PIECE_WORDS 19  // length, then the force vectors on the bodies of the first site, the second, and the geom

// `out` becomes the unit vector from a to b; returns the distance.
DEVICE real towards(const real* a, const real* b, real* out) {
  for (int i = 0; i < 3; ++i) out[i] = b[i] - a[i];
  return normalize3(out);
}

// Add to `out` the com-based force vector of the force sign * direction on body b at a point.
DEVICE void add_pull(const Model& m, int b, real sign, const real* direction, const real* point,
                     const real* subtree_com, real* out) {
  const real force[3] = {sign * direction[0], sign * direction[1], sign * direction[2]}, none[3] = {0, 0, 0};
  real pull[6];
  force_at(pull, force, none, point, subtree_com + 3 * m.body_rootid()[b]);
  for (int i = 0; i < 6; ++i) out[i] += pull[i];
}

DEVICE void tendon_piece(const Model& m, int p, const real* xpos, const real* xquat, const real* subtree_com,
                         const real* geom_xpos, const real* geom_xmat, real* piece) {
  const int site1 = m.path_site()[2 * p], site2 = m.path_site()[2 * p + 1], g = m.path_geom()[p];
  const int body1 = m.site_bodyid()[site1], body2 = m.site_bodyid()[site2];
  real x1[3], x2[3], direction[3], enter[3], leave[3];
  site_position(m, site1, xpos, xquat, x1);
  site_position(m, site2, xpos, xquat, x2);
  for (int i = 0; i < PIECE_WORDS; ++i) piece[i] = 0;
  real on_geom = -1;
  if (g >= 0) {
    on_geom = wrap_geom(m, g, m.path_side()[p], x1, x2, xpos, xquat, geom_xpos, geom_xmat, enter, leave);
  }
  if (on_geom < 0) {
    piece[0] = towards(x1, x2, direction);
    add_pull(m, body1, R(-1.0), direction, x1, subtree_com, piece + 1);
    add_pull(m, body2, R(1.0), direction, x2, subtree_com, piece + 7);
    return;
  }
  const int body = m.geom_bodyid()[g];
  const real before = towards(x1, enter, direction);
  add_pull(m, body1, R(-1.0), direction, x1, subtree_com, piece + 1);
  add_pull(m, body, R(1.0), direction, enter, subtree_com, piece + 13);
  const real after = towards(leave, x2, direction);
  add_pull(m, body, R(-1.0), direction, leave, subtree_com, piece + 13);
  add_pull(m, body2, R(1.0), direction, x2, subtree_com, piece + 7);
  piece[0] = before + on_geom + after;
}

// Derivative of a piece's length with respect to a dof with motion axis `axis`, which moves some of the piece's bodies.
DEVICE real piece_slope(int moved, const real* axis, const real* piece) {
  real slope = 0;
  if (moved & 1) slope += dot6(axis, piece + 1);
  if (moved & 2) slope += dot6(axis, piece + 7);
  if (moved & 4) slope += dot6(axis, piece + 13);
  return slope;
}

// What entry e of the Jacobian follows from: its tendon and dof, and its parts, of which the first is known.
struct SlopeEntry {
  int tendon, dof, part, end, piece, moved;
};

DEVICE SlopeEntry slope_entry(const Model& m, int e) {
  return {m.ten_J_entry()[2 * e], m.ten_J_entry()[2 * e + 1], m.ten_J_partadr()[e], m.ten_J_partadr()[e + 1], 0, 0};
}

DEVICE void find_part(const Model& m, SlopeEntry& entry) {
  if (entry.part >= entry.end) return;
  entry.piece = m.ten_J_part()[2 * entry.part];
  entry.moved = m.ten_J_part()[2 * entry.part + 1];
}

// The entry of the Jacobian; `pieces` begins with piece number `begin`.
DEVICE real tendon_slope(const Model& m, const SlopeEntry& entry, const real* cdof, const real* pieces, int begin) {
  const int v = entry.dof;
  real slope = 0;
  if (entry.part >= entry.end) {  // of a fixed tendon
    const int first = m.tendon_adr()[entry.tendon], wraps = first + m.tendon_num()[entry.tendon];
    ROLLED for (int k = first; k < wraps; ++k) slope += m.wrap_dofadr()[k] == v ? m.wrap_prm()[k] : R(0.0);
    return slope;
  }
  int p = entry.piece, moved = entry.moved;
  ROLLED for (int k = entry.part; k < entry.end; ++k) {
    slope = fma_(m.path_scale()[p], piece_slope(moved, cdof + 6 * v, pieces + PIECE_WORDS * (p - begin)), slope);
    if (k + 1 < entry.end) p = m.ten_J_part()[2 * k + 2], moved = m.ten_J_part()[2 * k + 3];
  }
  return slope;
}

// (3) Entries `from` to `to` of the Jacobian. What the next entries of a lane follow from is loaded two rounds and one
// round ahead, because each load gives the address of the next.
DEVICE void tendon_slopes(const Model& m, int from, int to, const real* cdof, const real* pieces, int begin,
                          real* ten_J) {
  const SlopeEntry none = {0, 0, 0, 0, 0, 0};
  const auto entry_at = [&](int e) { return e < to ? slope_entry(m, e) : none; };
  SlopeEntry next = entry_at(from + lane()), after = entry_at(from + lane() + LANES);
  find_part(m, next);
  ROLLED for (int e = from + lane(); e < to; e += LANES) {
    const SlopeEntry own = next;
    next = after;
    find_part(m, next);
    after = entry_at(e + 2 * LANES);
    ten_J[own.tendon * m.nv() + own.dof] = tendon_slope(m, own, cdof, pieces, begin);
  }
}

DEVICE void tendon(const Model& m, const real* qpos, const real* xpos, const real* xquat, const real* subtree_com,
                   const real* cdof, const real* geom_xpos, const real* geom_xmat, real* ten_length, real* ten_J,
                   real* pieces) {
  ROLLED for (int group = 0; group < m.npathgroup(); ++group) {
    const int first = m.path_group()[group], end = m.path_group()[group + 1];
    const int begin = m.tendon_pathadr()[first];
    const int number = m.tendon_pathadr()[end - 1] + m.tendon_pathnum()[end - 1] - begin;
    // (1) pieces of spatial tendons
    LANE_FOR(p, number) {
      tendon_piece(m, begin + p, xpos, xquat, subtree_com, geom_xpos, geom_xmat, pieces + PIECE_WORDS * p);
    }
    lane_sync();
    // (2) lengths: weighted sums of joint coordinates, or of pieces
    LANE_FOR(k, end - first) {
      const int t = first + k, last = m.tendon_pathadr()[t] + m.tendon_pathnum()[t];
      real length = tendon_length(m, t, qpos);
      ROLLED for (int p = m.tendon_pathadr()[t]; p < last; ++p) {
        length = fma_(m.path_scale()[p], pieces[PIECE_WORDS * (p - begin)], length);
      }
      ten_length[t] = length;
    }
    // (3) Jacobians: derivatives with respect to the velocities
    tendon_slopes(m, m.ten_J_rowadr()[first], m.ten_J_rowadr()[end], cdof, pieces, begin, ten_J);
    lane_sync();
  }
}
