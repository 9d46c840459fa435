// Sums along kinematic trees, one lane per tree and component. The bodies of a tree are a range with parents before
// children, so a lane that walks them needs no other lane's results and no barrier.
#pragma once

// x[body][width] becomes the sum over the body's subtree; the world's entry is not touched.
DEVICE void sum_subtrees(const Model& m, real* x, int width) {
  LANE_FOR(e, width * m.nroot()) {
    const int root = m.root_body()[e / width], i = e % width;
    OVERLAPPED for (int b = m.body_last()[root]; b > root; --b) {
      x[width * m.body_parentid()[b] + i] += x[width * b + i];
    }
  }
  lane_sync();
}

// x[body] = x[parent] + sum over the body's dofs of axis[dof] qvel[dof], spatial vectors; the world's is (0, lift).
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
