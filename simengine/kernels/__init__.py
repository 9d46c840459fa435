"""From stages to compiled kernels: the portable dialect, code generation, builds and their cache."""
