"""Centres of mass, com-based inertias and motion axes."""

from simengine.stages.stage import Stage

COM_POS = Stage(
    name="com_pos",
    reads=("xmat", "xipos", "ximat", "xanchor", "xaxis"),
    writes=("subtree_com", "cinert", "cdof"),
    flops=120,
    ref="com_pos_ref:com_pos",
)
