"""Which kernels there are: every stage alone, and the fused ones that a step is made of."""

from __future__ import annotations

from simengine.kernels.kernel import Kernel
from simengine.stages.acc_bias import ACC_BIAS
from simengine.stages.acceleration import ACCELERATION
from simengine.stages.actuation import ACTUATION
from simengine.stages.body_forces import BODY_FORCES
from simengine.stages.collision import COLLISION, COLLISION_ANY
from simengine.stages.com_pos import COM_POS
from simengine.stages.com_vel import COM_VEL
from simengine.stages.constraint import CONSTRAINT
from simengine.stages.constraint_general import CONSTRAINT_GENERAL
from simengine.stages.crb import CRB
from simengine.stages.euler import EULER
from simengine.stages.factor_m import FACTOR_M
from simengine.stages.fluid import FLUID
from simengine.stages.guard import GUARD
from simengine.stages.kinematics import KINEMATICS
from simengine.stages.narrowphase import NARROWPHASE
from simengine.stages.passive import PASSIVE
from simengine.stages.rk4 import RK4
from simengine.stages.rne import RNE
from simengine.stages.rne_post import RNE_POST, RNE_POST_GENERAL
from simengine.stages.scan import SCAN
from simengine.stages.sensor_acc import SENSOR_ACC
from simengine.stages.sensor_pos import SENSOR_POS
from simengine.stages.sensor_vel import SENSOR_VEL
from simengine.stages.solve import SOLVE
from simengine.stages.stage import Stage
from simengine.stages.subtree_vel import SUBTREE_VEL
from simengine.stages.unconstrained import UNCONSTRAINED
from simengine.state.fields import FIELDS

STAGES: tuple[Stage, ...] = (
    GUARD,
    KINEMATICS,
    COM_POS,
    COLLISION,
    COLLISION_ANY,
    SCAN,
    CRB,
    FACTOR_M,
    COM_VEL,
    PASSIVE,
    FLUID,
    RNE,
    ACTUATION,
    ACCELERATION,
    *NARROWPHASE.values(),
    CONSTRAINT,
    CONSTRAINT_GENERAL,
    SOLVE,
    UNCONSTRAINED,
    EULER,
    RK4,
    RNE_POST,
    RNE_POST_GENERAL,
    SUBTREE_VEL,
    ACC_BIAS,
    SENSOR_POS,
    SENSOR_VEL,
    BODY_FORCES,
    SENSOR_ACC,
)

INTEGRATORS: dict[str, Stage] = {"euler": EULER, "rk4": RK4}

_COUNTS = frozenset({"cand_adr", "ncon", "nefc", "counts"})
_ROWS = frozenset(f.name for f in FIELDS if f.space == "row")
_CONTACTS = frozenset(f.name for f in FIELDS if f.space == "contact")


def single(stage: Stage) -> Kernel:
    """The kernel of one stage alone; every field it writes goes to memory."""
    return Kernel(f"only_{stage.name}", (stage,), unit="column" if stage is SCAN else "world")


POSITION = Kernel(
    "position",
    (GUARD, KINEMATICS, COM_POS, COLLISION),
    direct=_COUNTS,
    preload=frozenset({"qpos"}),
    resident=8,
)
POSITION_GENERAL = Kernel(
    "position_general",
    (GUARD, KINEMATICS, COM_POS, COLLISION_ANY),
    direct=_COUNTS,
    preload=frozenset({"qpos"}),
    resident=2,
)
SMOOTH = Kernel(
    "smooth",
    (CRB, FACTOR_M, COM_VEL, PASSIVE, RNE, ACTUATION, ACCELERATION),
    direct=frozenset(),
    preload=frozenset({"cinert", "cdof", "qvel", "qpos"}),
    resident=8,
)
SMOOTH_FLUID = Kernel(
    "smooth_fluid",
    (CRB, FACTOR_M, COM_VEL, PASSIVE, FLUID, RNE, ACTUATION, ACCELERATION),
    direct=frozenset(),
    preload=frozenset({"cinert", "cdof", "qvel", "qpos"}),
    resident=8,
)
SCAN_KERNEL = Kernel("scan", (SCAN,), unit="column")
NARROW: dict[str, Kernel] = {name: Kernel(name, (stage,)) for name, stage in NARROWPHASE.items()}
POST = Kernel("rne_post", (RNE_POST,))
POST_GENERAL = Kernel("rne_post_general", (RNE_POST_GENERAL,))
SENSE_MOTION = Kernel("sense_motion", (SUBTREE_VEL, ACC_BIAS, SENSOR_POS, SENSOR_VEL))
SENSE_FORCES = Kernel("sense_forces", (BODY_FORCES, SENSOR_ACC))


def position(general: bool) -> Kernel:
    """Guard, kinematics and counting; simple models do without the code of heavy pair types."""
    return POSITION_GENERAL if general else POSITION


def post(general_rows: bool) -> Kernel:
    """External forces on bodies; models without general rows do without their code."""
    return POST_GENERAL if general_rows else POST


def smooth(has_fluid: bool) -> Kernel:
    """Inertia, smooth forces and the acceleration they give; models without a fluid do not pay for it."""
    return SMOOTH_FLUID if has_fluid else SMOOTH


def finish(integrator: str, arena: bool) -> Kernel:
    """Rows, solver and integration of worlds with constraint rows; `arena` keeps the rows in memory, not scratch."""
    stages = (CONSTRAINT, SOLVE, *((INTEGRATORS[integrator],) if integrator else ()))
    name = "_".join(("finish", integrator or "forward", *(("arena",) if arena else ())))
    return Kernel(name, stages, direct=_CONTACTS | (_ROWS if arena else frozenset()), resident=6)


def advance(integrator: str) -> Kernel:
    """Integration of worlds without constraint rows."""
    stages = (UNCONSTRAINED, *((INTEGRATORS[integrator],) if integrator else ()))
    return Kernel(f"advance_{integrator or 'forward'}", stages, direct=_CONTACTS)


def step_kernels(integrator: str) -> tuple[Kernel, ...]:
    """Every kernel a step (or, with an empty integrator, `forward()`) of a model with this integrator may launch."""
    return (
        POSITION,
        POSITION_GENERAL,
        SMOOTH,
        SMOOTH_FLUID,
        SCAN_KERNEL,
        *NARROW.values(),
        finish(integrator, False),
        finish(integrator, True),
        advance(integrator),
        POST,
        POST_GENERAL,
        SENSE_MOTION,
        SENSE_FORCES,
    )


def all_kernels() -> tuple[Kernel, ...]:
    """Every kernel of the engine, each once."""
    kernels = [single(stage) for stage in STAGES]
    for integrator in ("", *INTEGRATORS):
        kernels += step_kernels(integrator)
    return tuple({kernel.name: kernel for kernel in kernels}.values())
