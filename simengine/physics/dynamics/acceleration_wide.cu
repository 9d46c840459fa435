// Smooth forces and the acceleration they give, for an inertia that is eliminated in registers, without its factor:
// with a row in each lane, or with two (wide.cuh); see acceleration.cu.

DEVICE void acceleration_wide(const Model& m, const real* qfrc_applied, const real* xfrc_applied, const real* xipos,
                              const real* subtree_com, const real* cdof, const real* qfrc_passive,
                              const real* qfrc_bias, const real* qfrc_actuator, const real* qM, real* qfrc_smooth,
                              real* qacc_smooth, real* cfrc_applied, real* beyond) {
  sum_forces(m, qfrc_applied, xfrc_applied, xipos, subtree_com, cdof, qfrc_passive, qfrc_bias, qfrc_actuator,
             qfrc_smooth, qacc_smooth, cfrc_applied);
#ifdef MATRIX_ROWS
  const auto no_row = [](int) { return RowTerm{0, 0, false, -1}; };
  const auto no_cone = [](int, int) { return R(0.0); };
  wide_solve_rows(m.column, qacc_smooth, qM, (const real*)0, R(0.0), 0, (const real*)0, no_row, no_cone, qacc_smooth,
                  (real*)0, R(0.0), beyond, m.nv());
#elif ONE_ROW_A_LANE
  const int i = lane(), n = m.nv();
  real h[LANES];
#if DOF_RANGES
  const DofRange range = range_of_tree(m);
  range_load<LANES>(h, range, qM, n);
  const real solved = range_solve(h, i < n ? qacc_smooth[i] : R(0.0), range, m.column);
#else
  // by symmetry a lane reads a column, so that neighbouring lanes read neighbouring words
#pragma unroll
  for (int j = 0; j < LANES; ++j) h[j] = i < n && j < n ? qM[j * n + i] : R(0.0);
  reg_pad(h, n);
  const real solved = reg_solve(h, i < n ? qacc_smooth[i] : R(0.0), n, m.column);
#endif
  lane_sync();
  if (i < n) qacc_smooth[i] = solved;
  lane_sync();
#else
  chol_factor(m, beyond, qM, m.nv());
  chol_solve(qacc_smooth, beyond, m.nv());
#endif
}
