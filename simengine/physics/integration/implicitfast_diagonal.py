"""`implicitfast` where dampers and actuators act on one dof each, for lanes that hold the inertia in registers."""

from simengine.physics.stage import Stage

IMPLICITFAST_DIAGONAL = Stage(
    name="implicitfast_diagonal",
    reads=(
        *("qM", "qfrc_smooth", "qacc_smooth", "qfrc_constraint", "qacc", "cinert", "cdof", "cvel", "cdof_dot"),
        *("ctrl", "act", "act_dot", "actuator_length", "actuator_velocity", "actuator_moment", "actuator_force"),
        "qfrc_actuator",
    ),
    updates=("qpos", "qvel", "qacc_warmstart", "nstep", "world_status"),
    scratch=(
        *(("slope", ("nu",)), ("damping", ("nv",)), ("force", ("nv",)), ("next_qvel", ("nv",)), ("next_qpos", ("nq",))),
        *(("maps", ("nroot", 36)), ("drift", ("nv", 6)), ("matrices", ("nroot", 36)), ("hessian", ("nhessian",))),
    ),
    symmetric=True,
    flops=200,
)
"""Of trees with one joint, which is free, it has the derivative of the Coriolis forces, too."""
