// Sums along kinematic trees. The bodies of a tree are consecutive, parents before children, so a lane that walks them
// for one component needs no results of other lanes and no barrier.
#pragma once

// x[body][width] becomes the sum over the body's subtree; the entry of the world body is not changed.
DEVICE void sum_subtrees(const Model& m, real* x, int width) {
#if !SIMENGINE_GPU && LANES == 1
  // the same sums, along the components
  for (int t = 0; t < m.nroot(); ++t) {
    const int root = m.root_body()[t];
    for (int b = m.body_last()[root]; b > root; --b) {
      real *to = x + width * m.body_parentid()[b], *from = x + width * b;
      for (int i = 0; i < width; ++i) to[i] += from[i];
    }
  }
  return;
#endif
  LANE_FOR(e, width * m.nroot()) {
    const int root = m.root_body()[e / width], i = e % width;
    OVERLAPPED for (int b = m.body_last()[root]; b > root; --b) {
      x[width * m.body_parentid()[b] + i] += x[width * b + i];
    }
  }
  lane_sync();
}

// x[body] = x[parent] + sum over the body's dofs of axis[dof] qvel[dof], all spatial vectors; x of the world body is
// (0, lift).
#if SIMENGINE_GPU
// Lanes share the bodies: each body has its own part first, and rounds add those of the bodies above
// (simengine/model/rounds.py).
DEVICE void sum_branches(const Model& m, const real* axis, const real* qvel, const real* lift, real* x) {
  LANE_FOR(b, m.nbody()) {
    const int dofadr = m.body_dofadr()[b], dofnum = m.body_dofnum()[b];
    const bool lifted = b == 0 || m.body_parentid()[b] == 0;
    real sum[6] = {0, 0, 0, 0, 0, 0};
    for (int i = 0; i < 3; ++i) sum[3 + i] = lifted ? lift[i] : R(0.0);
    ROLLED for (int v = dofadr; v < dofadr + dofnum; ++v) {
      for (int i = 0; i < 6; ++i) sum[i] = fma_(axis[6 * v + i], qvel[v], sum[i]);
    }
    for (int i = 0; i < 6; ++i) x[6 * b + i] = sum[i];
  }
  lane_sync();
  ROLLED for (int round = 0; round < m.nround(); ++round) {
    const int begin = m.round_adr()[round], end = m.round_adr()[round + 1];
    LANE_FOR(k, end - begin) {
      const int b = m.round_body()[begin + k], base = m.round_base()[begin + k];
      for (int i = 0; i < 6; ++i) x[6 * b + i] += x[6 * base + i];
    }
    lane_sync();
  }
}
#else
DEVICE void sum_branches(const Model& m, const real* axis, const real* qvel, const real* lift, real* x) {
  LANE_FOR(i, 6) x[i] = i < 3 ? R(0.0) : lift[i - 3];
  LANE_FOR(e, 6 * m.nroot()) {
    const int root = m.root_body()[e / 6], i = e % 6, last = m.body_last()[root];
    ROLLED for (int b = root; b <= last; ++b) {
      const int dofadr = m.body_dofadr()[b], dofnum = m.body_dofnum()[b];
      real sum = b > root ? x[6 * m.body_parentid()[b] + i] : i < 3 ? R(0.0) : lift[i - 3];
      ROLLED for (int v = dofadr; v < dofadr + dofnum; ++v) sum = fma_(axis[6 * v + i], qvel[v], sum);
      x[6 * b + i] = sum;
    }
  }
  lane_sync();
}
#endif

// Does a dof turn bodies? The others are slides, and the translations of free joints.
DEVICE bool turns_bodies(const Model& m, int v) {
  const int j = m.dof_jntid()[v], type = m.jnt_type()[j];
  return type != JNT_SLIDE && !(type == JNT_FREE && v - m.jnt_dofadr()[j] < 3);
}

// Momentum of the subtree of a dof's body per unit velocity of the dof, about the body's own centre of mass.
//
// About the centre of mass of the whole tree, as in crb.cu, the result for a small distant body would be a difference
// of large numbers: its inertia about that point comes mostly from the distance, and the dof's axis cancels that part.
DEVICE void subtree_momentum(const Model& m, int v, const real* xipos, const real* ximat, const real* xanchor,
                             const real* cdof, real* angular, real* linear) {
  const int b = m.dof_bodyid()[v];
  const real *axis = cdof + 6 * v, *anchor = xanchor + 3 * m.dof_jntid()[v];
  real arm[3], start[3];
  for (int i = 0; i < 3; ++i) {
    arm[i] = xipos[3 * b + i] - anchor[i];
    start[i] = axis[3 + i];
    angular[i] = linear[i] = 0;
  }
  if (turns_bodies(m, v)) cross3(start, axis, arm);
  ROLLED for (int k = b; k <= m.body_last()[b]; ++k) {
    const real* mat = ximat + 9 * k;
    const auto inertia = m.body_inertia() + 3 * k;
    const auto mass = m.body_mass()[k];
    real out[3], momentum[3], spin[3], moment[3];
    for (int i = 0; i < 3; ++i) out[i] = xipos[3 * k + i] - xipos[3 * b + i];
    cross3(momentum, axis, out);
    for (int i = 0; i < 3; ++i) {
      momentum[i] = mass * (start[i] + momentum[i]);
      spin[i] = inertia[i] * fma_(mat[6 + i], axis[2], fma_(mat[3 + i], axis[1], mat[i] * axis[0]));
      linear[i] += momentum[i];
    }
    cross3(moment, out, momentum);
    for (int i = 0; i < 3; ++i) angular[i] += moment[i] + dot3(mat + 3 * i, spin);
  }
}

// Projection of a momentum about the point on a dof: its inertia coupling with the dof that causes the momentum.
DEVICE real along_dof(const Model& m, int v, const real* point, const real* xanchor, const real* cdof,
                      const real* angular, const real* linear) {
  const real *axis = cdof + 6 * v, *anchor = xanchor + 3 * m.dof_jntid()[v];
  if (!turns_bodies(m, v)) return dot3(axis + 3, linear);
  real arm[3], about[3];
  for (int i = 0; i < 3; ++i) arm[i] = point[i] - anchor[i];
  cross3(about, arm, linear);
  for (int i = 0; i < 3; ++i) about[i] += angular[i];
  return dot3(axis, about);
}
