"""Looks up the forms of a stage, which the declarations of the stages state."""

from __future__ import annotations

from simengine.physics.dynamics.acceleration import ACCELERATION_BRANCHES, ACCELERATION_WIDE
from simengine.physics.islands.blocks import (
    ACCELERATION_BLOCKS,
    CRB_BLOCKS,
    ENERGY_BLOCKS,
    EULER_BLOCKS,
    EULER_GENERAL_BLOCKS,
    FACTOR_BLOCKS,
    IMPLICIT_BLOCKS,
    IMPLICITFAST_BLOCKS,
    SENSOR_VEL_BLOCKS,
)
from simengine.physics.islands.islands import CONSTRAINT_BLOCKS
from simengine.physics.islands.pgs_islands import PGS_DESCEND_LARGE, PGS_START_LARGE
from simengine.physics.islands.solve_large import SOLVE_LARGE
from simengine.physics.solvers.noslip import NOSLIP_BRANCHES
from simengine.physics.stage import Form, Stage

_FORMS: dict[tuple[str, Form], Stage] = {
    (name, stage.form): stage
    for stage in (
        *(CRB_BLOCKS, FACTOR_BLOCKS, ACCELERATION_BLOCKS, CONSTRAINT_BLOCKS, ENERGY_BLOCKS, SENSOR_VEL_BLOCKS),
        *(EULER_BLOCKS, EULER_GENERAL_BLOCKS, IMPLICIT_BLOCKS, IMPLICITFAST_BLOCKS),
        *(SOLVE_LARGE, PGS_START_LARGE, PGS_DESCEND_LARGE, ACCELERATION_BRANCHES, ACCELERATION_WIDE, NOSLIP_BRANCHES),
    )
    if stage.form
    for name in stage.of
}


def has_form(stage: Stage, form: Form) -> bool:
    """Whether a stage has a form of this kind."""
    return (stage.name, form) in _FORMS


def in_form(stage: Stage, form: Form) -> Stage:
    """The form of a stage of this kind, or the stage itself if it has none."""
    return _FORMS.get((stage.name, form), stage)
