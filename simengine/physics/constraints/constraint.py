"""Constraint rows: limits and contacts.

The stage runs only for worlds for which `collision` counted rows. A frozen world has none and must not be listed.
"""

from simengine.physics.stage import Stage

CONSTRAINT = Stage(
    name="constraint",
    reads=(
        "qpos",
        "qvel",
        "subtree_com",
        "cdof",
        "ncon",
        "nefc",
        "contact_dist",
        "contact_pos",
        "contact_frame",
        "contact_cand",
    ),
    writes=("contact_efc_address", "efc_J", "efc_pos", "efc_margin", "efc_D", "efc_aref", "efc_type", "efc_id"),
    flops=200,
    jax="constraint_jax:constraint",
)
