// Cholesky factors of the blocks of the joint-space inertia.

DEVICE void factor_blocks(const Model& m, const real* qM_blocks, real* qLD_blocks) {
  blocks_factor(m, qLD_blocks, qM_blocks, [](int, real x) { return x; });
}
