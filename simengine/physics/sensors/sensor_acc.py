"""Sensors of accelerations and forces."""

from simengine.physics.stage import Stage

SENSOR_ACC = Stage(
    name="sensor_acc",
    contact_parameters=True,
    reads=(
        *("xpos", "xquat", "subtree_com", "cvel", "cacc", "cfrc_int", "actuator_force", "qfrc_actuator"),
        *("ncon", "nefc", "contact_dist", "contact_pos", "contact_frame", "contact_cand", "contact_efc_address"),
        *("efc_type", "efc_id", "efc_force"),
    ),
    updates=("sensordata",),
    flops=50,
    jax="sensor_acc_jax:sensor_acc",
)
