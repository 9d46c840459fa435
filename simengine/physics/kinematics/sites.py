"""Frames of the sites."""

from simengine.physics.stage import Stage

SITES = Stage(
    name="sites",
    reads=("xpos", "xquat"),
    writes=("site_xpos", "site_xmat"),
    flops=20,
    jax="sites_jax:sites",
)
