"""Contacts in the gap that MuJoCo drops where `override` is on: its boxes around bodies lack the gap.

Between the margin and margin plus gap, contacts are listed and exert no force. With `override`, the engine lists all of
them, and MuJoCo those of bodies whose boxes come as near as the margin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import mujoco
import numpy as np

from simengine.check.compare import as_numpy
from simengine.check.oracle import Evaluation
from simengine.check.states import STATE_ARRAYS
from simengine.model.model import Model
from simengine.simulation import Simulation

Pairs = Sequence[tuple[int, int]]


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
    if not overrides or model.table.has_adhesion or not evaluations:
        return set()
    found, theirs = set[int](), list(evaluations.items())
    with Simulation(model, len(theirs), backend=backend, dtype=dtype, on_nonfinite="freeze") as sim:
        sim.set_state(**{name: np.array([getattr(e.state, name) for _, e in theirs]) for name in STATE_ARRAYS})
        sim.forward()
        for world, (i, evaluation) in enumerate(theirs):
            contacts = sim.contacts(world)
            ours = list(zip(contacts.geom1.tolist(), contacts.geom2.tolist(), strict=True))
            wanted = list(map(tuple, evaluation.fields["contact_geom"].tolist()))
            if _only_gaps_are_new(ours, as_numpy(contacts.dist), wanted, float(option.o_margin)):
                found.add(i)
    return found


def _only_gaps_are_new(ours: Pairs, dist: np.ndarray, theirs: Pairs, margin: float) -> bool:
    missing = Counter(ours) - Counter(theirs)
    if any(pair in set(theirs) for pair in missing) or [pair for pair in ours if pair not in missing] != list(theirs):
        return False
    return all(far >= margin for pair, far in zip(ours, dist.tolist(), strict=True) if pair in missing)
