// Implicit integration without Coriolis forces (implicit.cu), where each damper and actuator acts on one dof: their
// derivative is diagonal, so that the velocity is solved for as in euler.cu, with another damping. A body that moves
// freely without others has six equations of its own, since its Coriolis forces count.

// Minus the derivative of the force on dof v with respect to its own velocity, for slopes of the actuators.
DEVICE real damping_of(const Model& m, int v, const real* qvel, const real* actuator_moment, const real* slope) {
  real change = -damper_slope(m.dof_damping()[v], m.dof_dampingpoly() + 2 * v, qvel[v]);
  ROLLED for (int e = m.moment_coladr()[v]; e < m.moment_coladr()[v + 1]; ++e) {
    const int u = m.moment_rowind()[e];
    const real moment = actuator_moment[u * m.nv() + v];
    if (slope[u] != 0) change = fma_(slope[u], moment * moment, change);
  }
  return -change;
}

// Column k of the derivative of the force on the tree of a free body with respect to its motion; see subtree_maps.
DEVICE void free_map(const Model& m, int root, int k, const Moving& f, real* map) {
  real x[6], out[6] = {0, 0, 0, 0, 0, 0};
  for (int i = 0; i < 6; ++i) x[i] = i == k;
  ROLLED for (int b = root; b <= m.body_last()[root]; ++b) {
    coriolis_change(f.cinert + 10 * b, f.cvel + 6 * b, x, out);
  }
  for (int i = 0; i < 6; ++i) map[6 * i + k] = out[i];
}

// Row i of the matrix of the six equations of a free body.
DEVICE void free_row(const Model& m, int root, int i, const Moving& f, const real* qM, const real* map,
                     const real* drift, const real* damping, real* row) {
  const int dof = m.body_dofadr()[root], nv = m.nv();
  const real h = m.opt_timestep()[0], *own = f.cdof + 6 * (dof + i);
  real pushed[6] = {0, 0, 0, 0, 0, 0}, inertia[10], held[6];
  for (int e = 0; e < 10; ++e) inertia[e] = f.cinert[10 * root + e];
  ROLLED for (int b = root + 1; b <= m.body_last()[root]; ++b) {
    for (int e = 0; e < 10; ++e) inertia[e] += f.cinert[10 * b + e];
  }
  inert_mul(held, inertia, own);  // the inertia is symmetric
  for (int e = 0; e < 6; ++e) {
    for (int k = 0; k < 6; ++k) pushed[k] = fma_(own[e], map[6 * e + k], pushed[k]);
  }
  ROLLED for (int j = 0; j < 6; ++j) {
    const real power = dot6(pushed, f.cdof + 6 * (dof + j)) - dot6(held, drift + 6 * (dof + j));
    const real change = i == j ? power - damping[dof + i] : power;
    row[j] = fma_(-h, change, qM[(dof + i) * nv + dof + j]);
  }
}

// x becomes the acceleration of the dofs of trees with one joint, which is free, with `force` at the end of the step.
DEVICE void solve_free_bodies(const Model& m, const Moving& f, const real* qM, const real* damping, real* force,
                              real* maps, real* drift, real* matrices, real* x) {
  axis_drifts(m, f, drift);
  LANE_FOR(e, 6 * m.nroot()) {
    const int root = m.root_body()[e / 6];
    if (free_alone(m, root)) free_map(m, root, e % 6, f, maps + 36 * (e / 6));
  }
  lane_sync();
  LANE_FOR(e, 6 * m.nroot()) {
    const int root = m.root_body()[e / 6];
    if (free_alone(m, root)) free_row(m, root, e % 6, f, qM, maps + 36 * (e / 6), drift, damping, matrices + 6 * e);
  }
  lane_sync();
  LANE_FOR(t, m.nroot()) {
    const int root = m.root_body()[t], dof = m.body_dofadr()[root];
    if (!free_alone(m, root)) continue;
    lane_lu_solve<6>(force + dof, matrices + 36 * t);
    for (int i = 0; i < 6; ++i) x[dof + i] = force[dof + i];
  }
  lane_sync();
}

DEVICE void implicitfast_diagonal(const Model& m, const real* qM, const real* qfrc_smooth, const real* qacc_smooth,
                                  const real* qfrc_constraint, const real* qacc, const real* cinert, const real* cdof,
                                  const real* cvel, const real* cdof_dot, const real* ctrl, const real* act,
                                  const real* act_dot, const real* actuator_length, const real* actuator_velocity,
                                  const real* actuator_moment, const real* actuator_force, const real* qfrc_actuator,
                                  real* qpos, real* qvel, real* qacc_warmstart, int* nstep, int* world_status,
                                  real* slope, real* damping, real* force, real* next_qvel, real* next_qpos, real* maps,
                                  real* drift, real* matrices, real* hessian) {
  const int nv = m.nv();
  const real h = m.opt_timestep()[0];
  const real* none = nullptr;
  const Moving moving = {qvel, none, none, none, none, none, cinert, none, cdof, cvel, cdof_dot, none, ctrl, act,
                         act_dot, actuator_length, actuator_velocity, actuator_moment, actuator_force, qfrc_actuator};
  if (!may_advance(m, qacc_smooth, qacc, world_status)) return;
  // (1) M - h D, where D is the derivative of the smooth forces with respect to the velocity
  LANE_FOR(u, m.nu()) slope[u] = actuator_slope(m, u, moving);
  LANE_FOR(i, m.nq()) next_qpos[i] = qpos[i];
  lane_sync();
  DOF_FOR(v, nv) {
    damping[v] = damping_of(m, v, qvel, actuator_moment, slope);
    force[v] = qfrc_smooth[v] + qfrc_constraint[v];
  }
  lane_sync();
  // (2) acceleration with the forces at the end of the step: (M - h D) a = all forces
  SymRows M;
#if DOF_RANGES
  M.range = range_of_tree(m);
#endif
  sym_load(&M, qM, nv);
  solve_with_rows(m, next_qvel, M, damping, h, 0, qM, 0, qM, qM, force, (real*)0, R(0.0), hessian, nv);
  if (any_alone(m)) solve_free_bodies(m, moving, qM, damping, force, maps, drift, matrices, next_qvel);
  // (3) velocity, then position with the new velocity
  semi_implicit(m, h, qacc, qpos, qvel, qacc_warmstart, nstep, world_status, next_qvel, next_qpos);
}
