"""Narrowphase of each pair type: the contacts of the pairs that touch according to counting."""

from simengine.model.pair_types import PAIR_TYPES
from simengine.physics.stage import Stage

_SHARES = {"hfield": ("convex", "patch")}
_READS = {"convex": ("search_near", "kept_contact"), "hfield": ("kept_prism",)}


def _narrowphase(pair_type: str) -> Stage:
    return Stage(
        name=pair_type,
        reads=("geom_xpos", "geom_xmat", "near_cand", "near_adr", "pair_tally", *_READS.get(pair_type, ())),
        writes=("contact_dist", "contact_pos", "contact_frame", "contact_cand"),
        shares=_SHARES.get(pair_type, ()),
        flops=40,
        jax=f"{pair_type}_jax:{pair_type}",
    )


NARROWPHASE: dict[str, Stage] = {pair_type: _narrowphase(pair_type) for pair_type in PAIR_TYPES}
