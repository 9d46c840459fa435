// Implicit integration: the smooth forces are linearised in the velocity and taken at the end of the step. With WHOLE
// (`implicit`) the derivative is complete. Without it (`implicitfast`) it leaves out Coriolis and centrifugal forces,
// except those of a tree with a free joint only. MuJoCo documentation, "Computation", "Numerical integration".

template <bool WHOLE>
DEVICE void implicit(const Model& m, const real* qM, const real* qfrc_smooth, const real* qacc_smooth,
                     const real* qfrc_constraint, const real* qacc, const real* xipos, const real* ximat,
                     const real* geom_xpos, const real* geom_xmat, const real* subtree_com, const real* cinert,
                     const real* crb, const real* cdof, const real* cvel, const real* cdof_dot, const real* ten_J,
                     const real* ctrl, const real* act, const real* act_dot, const real* actuator_length,
                     const real* actuator_velocity, const real* actuator_moment, const real* actuator_force,
                     const real* qfrc_actuator, real* qpos, real* qvel, real* qacc_warmstart, int* nstep,
                     int* world_status, real* slope, real* tendon_slopes, real* maps, real* drift, real* matrix,
                     real* next_qvel, real* next_qpos) {
  const Moving moving = {qvel, xipos, ximat, geom_xpos, geom_xmat, subtree_com, cinert, crb, cdof, cvel, cdof_dot,
                         ten_J, ctrl, act, act_dot, actuator_length, actuator_velocity, actuator_moment,
                         actuator_force, qfrc_actuator};
  if (!may_advance(m, qacc_smooth, qacc, world_status)) return;
  // (1) M - h D, where D is the derivative of the smooth forces with respect to the velocity
  const bool symmetric = implicit_matrix(m, moving, qM, WHOLE, slope, tendon_slopes, maps, drift, matrix);
  // (2) acceleration with the forces at the end of the step: (M - h D) a = all forces
  LANE_FOR(i, m.nq()) next_qpos[i] = qpos[i];
  DOF_FOR(v, m.nv()) next_qvel[v] = qfrc_smooth[v] + qfrc_constraint[v];
  lane_sync();
  implicit_solve(m, next_qvel, matrix, symmetric);
  // (3) velocity, then position with the new velocity
  const real h = m.opt_timestep()[0];
  semi_implicit(m, h, qacc, qpos, qvel, qacc_warmstart, nstep, world_status, next_qvel, next_qpos);
}
