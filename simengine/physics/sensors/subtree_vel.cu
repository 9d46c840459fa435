// Velocity of the centre of mass of every subtree, and angular momentum about it: MuJoCo's mj_subtreeVel. The sums use
// the bodies' own centres and leave out the common velocity, because sums about the com of the tree would largely
// cancel.

// Velocity of the centre of mass of body b, and angular momentum about it.
DEVICE void centre_motion(const Model& m, int b, const real* xipos, const real* ximat, const real* root,
                          const real* cvel, real* linear, real* spin) {
  const real *mat = ximat + 9 * b, *v = cvel + 6 * b, *inertia = m.body_inertia() + 3 * b;
  real arm[3], axis[3];
  for (int i = 0; i < 3; ++i) arm[i] = xipos[3 * b + i] - root[i];
  cross3(linear, v, arm);
  for (int i = 0; i < 3; ++i) {
    linear[i] += v[3 + i];
    spin[i] = R(0.0);
  }
  for (int c = 0; c < 3; ++c) {
    mat_col(axis, mat, c);
    const real along = inertia[c] * dot3(axis, v);
    for (int i = 0; i < 3; ++i) spin[i] += along * axis[i];
  }
}

DEVICE void subtree_vel(const Model& m, const real* xipos, const real* ximat, const real* subtree_com,
                        const real* cvel, real* subtree_linvel, real* subtree_angmom, real* motion) {
  // (1) motion of each body; the world body has none
  LANE_FOR(b, m.nbody()) {
    if (b == 0) {
      for (int i = 0; i < 6; ++i) motion[i] = R(0.0);
    } else {
      const real* root = subtree_com + 3 * m.body_rootid()[b];
      centre_motion(m, b, xipos, ximat, root, cvel, motion + 6 * b, motion + 6 * b + 3);
    }
  }
  lane_sync();
  // (2) sums over subtrees
  LANE_FOR(b, m.nbody()) {
    const real *com = subtree_com + 3 * b, mass = m.body_subtreemass()[b];
    real velocity[3] = {0, 0, 0}, sum[3] = {0, 0, 0}, arm[3], relative[3], turn[3];
    ROLLED for (int c = b; c <= m.body_last()[b]; ++c)
      for (int i = 0; i < 3; ++i) velocity[i] += m.body_mass()[c] * motion[6 * c + i];
    for (int i = 0; i < 3; ++i) velocity[i] = mass < MJMINVAL ? R(0.0) : divide_(velocity[i], mass);
    ROLLED for (int c = b > 0 ? b : 1; c <= m.body_last()[b]; ++c) {
      for (int i = 0; i < 3; ++i) {
        arm[i] = xipos[3 * c + i] - com[i];
        relative[i] = m.body_mass()[c] * (motion[6 * c + i] - velocity[i]);
      }
      cross3(turn, arm, relative);
      for (int i = 0; i < 3; ++i) sum[i] += motion[6 * c + 3 + i] + turn[i];
    }
    for (int i = 0; i < 3; ++i) {
      subtree_angmom[3 * b + i] = sum[i];
      subtree_linvel[3 * b + i] = velocity[i];
    }
  }
  lane_sync();
}
