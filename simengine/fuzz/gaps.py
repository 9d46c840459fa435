"""Contacts in the gap that MuJoCo drops where `override` is on: its boxes around bodies lack the gap.

Between the margin and margin plus gap, contacts are listed and exert no force. With `override`, the engine lists all of
them, and MuJoCo those of bodies whose boxes come as near as the margin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import mujoco
import numpy as np

from simengine.check.oracle import Evaluation
from simengine.check.solved import Listed, contacts
from simengine.model.model import Model


def in_dropped_gaps(model: Model, evaluations: Mapping[int, Evaluation], backend: str, dtype: str) -> set[int]:
    """Those of the states in which the engine lists MuJoCo's contacts in MuJoCo's order, and besides these only ones
    that can exert no force, of pairs of which MuJoCo lists none.

    Args:
        model: the model.
        evaluations: states by their numbers, and MuJoCo's results.
        backend: "cuda", "host", "jax" or "auto".
        dtype: "float32" or "float64".
    """
    option = model.mj.opt
    overrides = option.enableflags & int(mujoco.mjtEnableBit.mjENBL_OVERRIDE)
    if not overrides or not evaluations:
        return set()
    pulled, margin = _pulled(model.mj), option.o_margin
    ours = contacts(model, list(evaluations.values()), backend, dtype)
    return {
        i
        for (i, evaluation), listed in zip(evaluations.items(), ours, strict=True)
        if _only_gaps_are_new(listed, list(map(tuple, evaluation.fields["contact_geom"].tolist())), margin, pulled)
    }


def _pulled(mj: mujoco.MjModel) -> frozenset[int]:
    """The geoms of bodies that an adhesion actuator pulls at all their contacts, also those in the gap."""
    bodies = mj.actuator_trnid[np.asarray(mj.actuator_trntype) == int(mujoco.mjtTrn.mjTRN_BODY), 0]
    return frozenset(np.flatnonzero(np.isin(mj.geom_bodyid, bodies)).tolist())


def _only_gaps_are_new(ours: Listed, theirs: Sequence[tuple[int, int]], margin: float, pulled: frozenset[int]) -> bool:
    missing = Counter(ours.geoms) - Counter(theirs)
    if set(missing) & set(theirs) or [pair for pair in ours.geoms if pair not in missing] != list(theirs):
        return False
    if any(geom in pulled for pair in missing for geom in pair):
        return False
    return all(far >= margin for pair, far in zip(ours.geoms, ours.dist.tolist(), strict=True) if pair in missing)
