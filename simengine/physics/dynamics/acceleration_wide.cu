// Smooth forces and the acceleration they give, for an inertia that is eliminated in registers, two rows in a lane
// (wide.cuh), without its factor; see acceleration.cu.

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
#endif
}
