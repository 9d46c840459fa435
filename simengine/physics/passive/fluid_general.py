"""Forces of a fluid on bodies, by either model: the body as a box of its mass and inertia, or geoms as ellipsoids."""

from simengine.physics.stage import Form, Stage

FLUID_GENERAL = Stage(
    name="fluid_general",
    form=Form.GENERAL,
    of=("fluid",),
    reads=("xipos", "ximat", "geom_xpos", "geom_xmat", "subtree_com", "cdof", "cvel"),
    writes=("qfrc_fluid",),
    updates=("qfrc_passive",),
    scratch=(("cfrc_fluid", ("nbody", 6)),),
    flops=300,
    jax="fluid_general_jax:fluid_general",
)
