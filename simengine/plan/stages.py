"""Every stage over worlds, in the order in which an evaluation runs them."""

from __future__ import annotations

from functools import cache

from simengine.kernels.kernel import Kernel
from simengine.physics.actuation.activation import ACTIVATION
from simengine.physics.actuation.actuation import ACTUATION
from simengine.physics.actuation.actuation_general import ACTUATION_GENERAL
from simengine.physics.actuation.adhesion import ADHESION
from simengine.physics.actuation.transmission import TRANSMISSION
from simengine.physics.collision.collision import COLLISION, COLLISION_GENERAL
from simengine.physics.collision.narrowphase import NARROWPHASE
from simengine.physics.collision.scan import SCAN
from simengine.physics.constraints.constraint import CONSTRAINT
from simengine.physics.constraints.constraint_general import CONSTRAINT_GENERAL
from simengine.physics.dynamics.acceleration import ACCELERATION
from simengine.physics.dynamics.crb import CRB
from simengine.physics.dynamics.crb_general import CRB_GENERAL
from simengine.physics.dynamics.factor_m import FACTOR_M
from simengine.physics.dynamics.rne import RNE
from simengine.physics.dynamics.unconstrained import UNCONSTRAINED
from simengine.physics.integration.euler import EULER
from simengine.physics.integration.euler_general import EULER_GENERAL
from simengine.physics.integration.implicit import IMPLICIT, IMPLICITFAST
from simengine.physics.integration.rk4 import RK4
from simengine.physics.islands.islands import SCAN_ISLANDS
from simengine.physics.kinematics.com_pos import COM_POS
from simengine.physics.kinematics.com_vel import COM_VEL
from simengine.physics.kinematics.guard import GUARD
from simengine.physics.kinematics.kinematics import KINEMATICS
from simengine.physics.kinematics.sites import SITES
from simengine.physics.passive.fluid import FLUID
from simengine.physics.passive.fluid_general import FLUID_GENERAL
from simengine.physics.passive.gravcomp import GRAVCOMP
from simengine.physics.passive.passive import PASSIVE
from simengine.physics.passive.passive_general import PASSIVE_GENERAL
from simengine.physics.sensors.acc_bias import ACC_BIAS
from simengine.physics.sensors.body_forces import BODY_FORCES
from simengine.physics.sensors.energy import ENERGY
from simengine.physics.sensors.rne_post import RNE_POST, RNE_POST_GENERAL
from simengine.physics.sensors.sensor_acc import SENSOR_ACC
from simengine.physics.sensors.sensor_distance import SENSOR_DISTANCE
from simengine.physics.sensors.sensor_pos import SENSOR_POS
from simengine.physics.sensors.sensor_vel import SENSOR_VEL
from simengine.physics.sensors.subtree_vel import SUBTREE_VEL
from simengine.physics.solvers.noslip import NOSLIP
from simengine.physics.solvers.solve_cg import SOLVE_CG
from simengine.physics.solvers.solve_newton_general import SOLVE_NEWTON_GENERAL
from simengine.physics.solvers.solve_newton_unilateral import SOLVE_NEWTON_UNILATERAL
from simengine.physics.solvers.solve_pgs import SOLVE_PGS
from simengine.physics.stage import Stage
from simengine.physics.tendons.tendon import TENDON
from simengine.physics.tendons.tendon_forces import TENDON_FORCES
from simengine.physics.tendons.tendon_passive import TENDON_PASSIVE
from simengine.physics.tendons.tendon_velocity import TENDON_VELOCITY

STAGES: tuple[Stage, ...] = (
    GUARD,
    KINEMATICS,
    SITES,
    COM_POS,
    TENDON,
    COLLISION,
    COLLISION_GENERAL,
    SCAN,
    CRB,
    CRB_GENERAL,
    FACTOR_M,
    COM_VEL,
    PASSIVE,
    PASSIVE_GENERAL,
    FLUID,
    FLUID_GENERAL,
    RNE,
    TENDON_VELOCITY,
    TENDON_PASSIVE,
    TRANSMISSION,
    ADHESION,
    ACTUATION,
    ACTUATION_GENERAL,
    GRAVCOMP,
    ACCELERATION,
    *NARROWPHASE.values(),
    CONSTRAINT,
    CONSTRAINT_GENERAL,
    SOLVE_NEWTON_UNILATERAL,
    SOLVE_NEWTON_GENERAL,
    SOLVE_CG,
    SOLVE_PGS,
    NOSLIP,
    UNCONSTRAINED,
    EULER,
    EULER_GENERAL,
    RK4,
    IMPLICIT,
    IMPLICITFAST,
    ACTIVATION,
    RNE_POST,
    RNE_POST_GENERAL,
    TENDON_FORCES,
    ENERGY,
    SUBTREE_VEL,
    ACC_BIAS,
    SENSOR_POS,
    SENSOR_VEL,
    SENSOR_DISTANCE,
    BODY_FORCES,
    SENSOR_ACC,
)

INTEGRATORS: dict[str, Stage] = {stage.name: stage for stage in (EULER, EULER_GENERAL, RK4, IMPLICIT, IMPLICITFAST)}
SOLVERS: dict[str, Stage] = {
    stage.name: stage for stage in (SOLVE_NEWTON_UNILATERAL, SOLVE_NEWTON_GENERAL, SOLVE_CG, SOLVE_PGS)
}


_BLOCKS_OF_IMPLICITFAST = 5  # of 128 threads on a multiprocessor; with six, a thread's registers would spill


@cache
def single(stage: Stage) -> Kernel:
    """The kernel of one stage alone, which stores every field that it writes."""
    unit = "column" if stage in (SCAN, SCAN_ISLANDS) else "world"
    blocks = _BLOCKS_OF_IMPLICITFAST if stage is IMPLICITFAST else 1
    return Kernel(f"only_{stage.name}", (stage,), unit=unit, min_blocks_per_multiprocessor=blocks)
