// Cholesky factor of the joint-space inertia matrix.

DEVICE void factor_m(const Model& m, const real* qM, real* qLD) {
  // (1) qM = qLD qLD'
  chol_factor(m, qLD, qM, m.nv());
}
