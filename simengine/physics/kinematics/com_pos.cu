// Quantities about the centre of mass (com) of each tree: MuJoCo's mj_comPos. The spatial algebra is Featherstone's,
// with one reference point per tree.

DEVICE void com_pos(const Model& m, const real* xmat, const real* xipos, const real* ximat, const real* xanchor,
                    const real* xaxis, real* subtree_com, real* cinert, real* cdof) {
  // (1) centres of mass of the subtrees; a subtree without mass takes that of its root body
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
  // (2) body inertias about the com of their tree, in world axes
  LANE_FOR(b, m.nbody()) {
    const real* mat = ximat + 9 * b;
    const auto inertia = m.body_inertia() + 3 * b;
    const real mass = m.body_mass()[b];
    real* out = cinert + 10 * b;
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
  // (3) motion axes of the dofs about the same point
  DOF_FOR(v, m.nv()) {
    const int j = m.dof_jntid()[v], b = m.dof_bodyid()[v], type = m.jnt_type()[j];
    const int k = v - m.jnt_dofadr()[j];
    real* out = cdof + 6 * v;
    if (type == JNT_SLIDE || (type == JNT_FREE && k < 3)) {
      for (int i = 0; i < 3; ++i) {
        out[i] = 0;
        out[3 + i] = type == JNT_SLIDE ? xaxis[3 * j + i] : R(1.0) * (i == k);
      }
    } else {
      real offset[3];
      for (int i = 0; i < 3; ++i) offset[i] = subtree_com[3 * m.body_rootid()[b] + i] - xanchor[3 * j + i];
      if (type == JNT_FREE || type == JNT_BALL) {
        mat_col(out, xmat + 9 * b, type == JNT_FREE ? k - 3 : k);
      } else {
        for (int i = 0; i < 3; ++i) out[i] = xaxis[3 * j + i];
      }
      cross3(out + 3, out, offset);
    }
  }
  lane_sync();
}
