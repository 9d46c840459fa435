"""Motion without constraints: the joint-space inertia matrix and its factor, bias forces, smooth acceleration."""
