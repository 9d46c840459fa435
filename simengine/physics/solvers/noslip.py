"""Friction without slip: sweeps after the solver that ignore the regularisation of friction."""

from dataclasses import replace

from simengine.physics.stage import Form, Stage

NOSLIP = Stage(
    name="noslip",
    reads=(
        *("nefc", "qM", "qLD", "qacc_smooth", "efc_J", "efc_D", "efc_aref"),
        *("efc_type", "efc_id", "efc_frictionloss", "contact_efc_address", "contact_cand"),
    ),
    writes=("efc_Y", "efc_b", "efc_diagAR", "efc_weight", "efc_island", "efc_order"),
    updates=("qacc", "efc_force", "qfrc_constraint"),
    scratch=(("z", ("nvp",)), ("change", ("nvp",)), ("tree", ("ntree",))),
    shares=("solve_pgs",),
    flops=2000,
    jax="noslip_jax:noslip",
)

NOSLIP_BRANCHES = replace(
    NOSLIP,
    name="noslip_branches",
    form=Form.BRANCHES,
    of=("noslip",),
    reads=tuple(name for name in NOSLIP.reads if name != "qLD"),
    scratch=(*NOSLIP.scratch, ("branches", ("nbranchword",))),
    shares=(*NOSLIP.shares, "noslip"),
    jax="",
)
