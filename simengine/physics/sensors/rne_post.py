"""External forces on bodies, with constraint forces.

`rne_post` handles the contacts of the stage `constraint`, and `rne_post_general` rows of every type.
"""

from dataclasses import replace

from simengine.physics.stage import Form, Stage

RNE_POST = Stage(
    name="rne_post",
    reads=(
        "xfrc_applied",
        "xipos",
        "subtree_com",
        "ncon",
        "contact_pos",
        "contact_frame",
        "contact_cand",
        "contact_efc_address",
        "efc_force",
    ),
    writes=("cfrc_ext",),
    flops=60,
    jax="rne_post_jax:rne_post",
)
RNE_POST_GENERAL = replace(
    RNE_POST,
    name="rne_post_general",
    form=Form.GENERAL,
    of=("rne_post",),
    contact_parameters=True,
    reads=(
        *("xfrc_applied", "eq_active", "xpos", "xquat", "xmat", "xipos", "subtree_com", "ncon", "nefc"),
        *("contact_pos", "contact_frame", "contact_cand", "contact_efc_address", "efc_force"),
    ),
)
