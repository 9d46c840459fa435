"""Composite rigid bodies: the joint-space inertia matrix."""

from simengine.stages.stage import Stage

CRB = Stage(name="crb", reads=("cinert", "cdof"), writes=("crb", "qM"), flops=150, ref="crb_ref:crb")
