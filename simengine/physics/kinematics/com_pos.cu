// Quantities about the centre of mass (com) of each tree: MuJoCo's mj_comPos. The spatial algebra is Featherstone's,
// with one reference point per tree.

// (1) Centres of mass of the subtrees; a subtree without mass takes that of its root body.
DEVICE void subtree_centres(const Model& m, const real* xipos, real* subtree_com) {
  LANE_FOR(e, 3 * m.nbody()) subtree_com[e] = m.body_mass()[e / 3] * xipos[e];
  lane_sync();
  sum_subtrees(m, subtree_com, 3);
#if LANES > 32
  for (int i = 0; i < 3; ++i) {
    real sum = 0;
    LANE_FOR(r, m.nroot()) sum += subtree_com[3 * m.root_body()[r] + i];
    sum = lane_sum(sum);
    if (lane() == 0) subtree_com[i] += sum;
  }
#else
  LANE_FOR(i, 3) {
    ROLLED for (int r = 0; r < m.nroot(); ++r) subtree_com[i] += subtree_com[3 * m.root_body()[r] + i];
  }
#endif
  lane_sync();
  LANE_FOR(e, 3 * m.nbody()) {
    const auto mass = m.body_subtreemass()[e / 3];
    subtree_com[e] = select(mass < MJMINVAL, xipos[e], divide_(subtree_com[e], mass));
  }
  lane_sync();
}

// Orientation of the inertial frame of body b.
DEVICE void inertial_matrix(const Model& m, int b, const real* xquat, real* mat) {
  real quat[4];
  quat_mul(quat, xquat + 4 * b, m.body_iquat() + 4 * b);
  quat_to_mat(mat, quat);
}

// (2) Inertia of body b about the com of its tree, in world axes; `mat` is the orientation of its inertial frame.
DEVICE void body_inertia(const Model& m, int b, const real* mat, const real* xipos, const real* subtree_com,
                         real* out) {
  const auto inertia = m.body_inertia() + 3 * b;
  const real mass = m.body_mass()[b];
  real d[3], full[6] = {0, 0, 0, 0, 0, 0};
  for (int i = 0; i < 3; ++i) d[i] = b ? xipos[3 * b + i] - subtree_com[3 * m.body_rootid()[b] + i] : R(0.0);
  for (int i = 0; i < 3; ++i) {
    const real x = mat[i], y = mat[3 + i], z = mat[6 + i], w = inertia[i];
    full[0] += w * x * x;
    full[1] += w * y * y;
    full[2] += w * z * z;
    full[3] += w * x * y;
    full[4] += w * x * z;
    full[5] += w * y * z;
  }
  out[0] = full[0] + mass * (d[1] * d[1] + d[2] * d[2]);
  out[1] = full[1] + mass * (d[0] * d[0] + d[2] * d[2]);
  out[2] = full[2] + mass * (d[0] * d[0] + d[1] * d[1]);
  out[3] = full[3] - mass * d[0] * d[1];
  out[4] = full[4] - mass * d[0] * d[2];
  out[5] = full[5] - mass * d[1] * d[2];
  for (int i = 0; i < 3; ++i) out[6 + i] = mass * d[i];
  out[9] = mass;
}

// (3) Motion axis of dof v about the same point; turned(axis, b, k) gives axis k of body b.
template <class Turned>
DEVICE void motion_axis(const Model& m, int v, const real* subtree_com, const real* xanchor, const real* xaxis,
                        real* out, const Turned& turned) {
  const int j = m.dof_jntid()[v], b = m.dof_bodyid()[v], type = m.jnt_type()[j];
  const int k = v - m.jnt_dofadr()[j];
  if (type == JNT_SLIDE || (type == JNT_FREE && k < 3)) {
    for (int i = 0; i < 3; ++i) {
      out[i] = 0;
      out[3 + i] = type == JNT_SLIDE ? xaxis[3 * j + i] : R(1.0) * (i == k);
    }
  } else {
    real offset[3];
    for (int i = 0; i < 3; ++i) offset[i] = subtree_com[3 * m.body_rootid()[b] + i] - xanchor[3 * j + i];
    if (type == JNT_FREE || type == JNT_BALL) {
      turned(out, b, type == JNT_FREE ? k - 3 : k);
    } else {
      for (int i = 0; i < 3; ++i) out[i] = xaxis[3 * j + i];
    }
    cross3(out + 3, out, offset);
  }
}

DEVICE void com_pos(const Model& m, const real* xmat, const real* xipos, const real* ximat, const real* xanchor,
                    const real* xaxis, real* subtree_com, real* cinert, real* cdof) {
  subtree_centres(m, xipos, subtree_com);
  LANE_FOR(b, m.nbody()) body_inertia(m, b, ximat + 9 * b, xipos, subtree_com, cinert + 10 * b);
  DOF_FOR(v, m.nv()) {
    motion_axis(m, v, subtree_com, xanchor, xaxis, cdof + 6 * v,
                [&](real* out, int b, int k) { mat_col(out, xmat + 9 * b, k); });
  }
  lane_sync();
}
