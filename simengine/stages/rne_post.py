"""External and contact forces on bodies, after the constraints."""

from simengine.stages.stage import Stage

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
    ref="rne_post_ref:rne_post",
)
