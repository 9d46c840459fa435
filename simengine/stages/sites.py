"""Frames of the sites."""

from simengine.stages.stage import Stage

SITES = Stage(
    name="sites",
    reads=("xpos", "xquat"),
    writes=("site_xpos", "site_xmat"),
    flops=20,
    ref="sites_ref:sites",
)
