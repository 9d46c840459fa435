"""Stages with block-diagonal inertia, for worlds that are solved island by island.

In JAX, `crb_general`, `factor_m`, `acceleration` and `euler` take the place of these; see `forest_jax`.
"""

from dataclasses import replace

from simengine.physics.dynamics.acceleration import ACCELERATION
from simengine.physics.dynamics.crb_general import CRB_GENERAL
from simengine.physics.integration.euler_general import EULER_GENERAL
from simengine.physics.integration.implicit import IMPLICIT, IMPLICITFAST
from simengine.physics.sensors.energy import ENERGY
from simengine.physics.sensors.sensor_vel import SENSOR_VEL
from simengine.physics.stage import Form, Stage

CRB_BLOCKS = replace(
    CRB_GENERAL,
    name="crb_blocks",
    form=Form.BLOCKS,
    of=("crb", "crb_general"),
    writes=("crb", "qM_blocks"),
    jax="",
)
FACTOR_BLOCKS = Stage(
    name="factor_blocks",
    form=Form.BLOCKS,
    of=("factor_m",),
    reads=("qM_blocks",),
    writes=("qLD_blocks",),
    flops=100,
)
ACCELERATION_BLOCKS = replace(
    ACCELERATION,
    name="acceleration_blocks",
    form=Form.BLOCKS,
    of=("acceleration",),
    reads=(*ACCELERATION.reads[:-1], "qLD_blocks"),
    jax="",
)


def _reading_blocks(stage: Stage) -> Stage:
    """The stage with qM_blocks in place of qM, for a body that works block by block and so can read either."""
    reads = tuple("qM_blocks" if name == "qM" else name for name in stage.reads)
    return replace(stage, form=Form.BLOCKS, of=(stage.name,), reads=reads)


ENERGY_BLOCKS = _reading_blocks(ENERGY)
SENSOR_VEL_BLOCKS = _reading_blocks(SENSOR_VEL)
IMPLICIT_BLOCKS = _reading_blocks(IMPLICIT)
IMPLICITFAST_BLOCKS = _reading_blocks(IMPLICITFAST)
EULER_GENERAL_BLOCKS = _reading_blocks(EULER_GENERAL)
EULER_BLOCKS = Stage(
    name="euler_blocks",
    form=Form.BLOCKS,
    of=("euler",),
    reads=("qM_blocks", "qfrc_smooth", "qacc_smooth", "qfrc_constraint", "qacc"),
    writes=("damped_blocks",),
    updates=("qpos", "qvel", "qacc_warmstart", "nstep", "world_status"),
    scratch=(("next_qvel", ("nv",)), ("next_qpos", ("nq",))),
    flops=120,
)
