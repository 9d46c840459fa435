// Velocity of the centre of mass of every subtree, and angular momentum about it: MuJoCo's mj_subtreeVel.

DEVICE void subtree_vel(const Model& m, const real* subtree_com, const real* cinert, const real* cvel,
                        real* subtree_linvel, real* subtree_angmom, real* momentum) {
  // (1) momentum of each body about the com of its tree
  LANE_FOR(b, m.nbody()) inert_mul(momentum + 6 * b, cinert + 10 * b, cvel + 6 * b);
  lane_sync();
  // (2) sums over subtrees, moved to their own com; the world's holds trees with several coms
  LANE_FOR(b, m.nbody()) {
    const real* com = subtree_com + 3 * b;
    real sum[6] = {0, 0, 0, 0, 0, 0}, spin[3], arm[3];
    ROLLED for (int c = b > 0 ? b : 1; c <= m.body_last()[b]; ++c) {
      const real *part = momentum + 6 * c, *about = subtree_com + 3 * m.body_rootid()[c];
      for (int i = 0; i < 3; ++i) arm[i] = about[i] - com[i];
      cross3(spin, arm, part + 3);
      for (int i = 0; i < 3; ++i) {
        sum[i] += part[i] + spin[i];
        sum[3 + i] += part[3 + i];
      }
    }
    const real mass = m.body_subtreemass()[b];
    for (int i = 0; i < 3; ++i) {
      subtree_angmom[3 * b + i] = sum[i];
      subtree_linvel[3 * b + i] = mass < MJMINVAL ? R(0.0) : divide_(sum[3 + i], mass);
    }
  }
  lane_sync();
}
