"""Centres of mass, com-based inertias and motion axes."""

from simengine.physics.stage import Stage

COM_POS = Stage(
    name="com_pos",
    reads=("xmat", "xipos", "ximat", "xanchor", "xaxis"),
    writes=("subtree_com", "cinert", "cdof"),
    flops=120,
    jax="com_pos_jax:com_pos",
)
