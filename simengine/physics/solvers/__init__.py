"""Solvers of the constraint forces of a world: Newton, conjugate gradients, projected Gauss-Seidel, and noslip."""
