"""Constraint rows of every type: equalities, friction losses, limits and contacts.

The stage runs only for worlds for which `collision_general` counted rows. A frozen world has none and must not be
listed.
"""

from simengine.physics.stage import Form, Stage

CONSTRAINT_GENERAL = Stage(
    name="constraint_general",
    form=Form.GENERAL,
    of=("constraint",),
    reads=(
        "qpos",
        "qvel",
        "eq_active",
        "xpos",
        "xquat",
        "xmat",
        "subtree_com",
        "cdof",
        "cvel",
        "cdof_dot",
        "ten_length",
        "ten_J",
        "ncon",
        "nefc",
        "contact_dist",
        "contact_pos",
        "contact_frame",
        "contact_cand",
    ),
    writes=(
        "contact_efc_address",
        "efc_J",
        "efc_pos",
        "efc_margin",
        "efc_D",
        "efc_aref",
        "efc_type",
        "efc_id",
        "efc_frictionloss",
    ),
    scratch=(("contacts", (16 * 24,)),),
    flops=400,
    jax="constraint_jax:constraint",
)
