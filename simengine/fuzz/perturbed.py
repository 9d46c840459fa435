"""By how much MuJoCo's own results change if its numbers are rounded as an engine of a precision must round them.

A difference from MuJoCo is no error of the engine if MuJoCo differs as much from itself under changes that no engine of
this precision can avoid. The changes do not depend on the engine, so they cannot excuse what it gets wrong: where
MuJoCo's result is steady, a difference stays a finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import mujoco
import numpy as np

from simengine.check.compare import arena_errors, heeds_order, world_errors
from simengine.check.fields import AFTER_ROWS, ALONG_NORMALS, FORWARD, STEPPED
from simengine.check.held import Terms, Unit, forward_with_rounded
from simengine.check.oracle import Evaluation, Oracle, collect, dense_jacobian
from simengine.check.order import contact_order, marks
from simengine.check.reordered import put_in_order
from simengine.check.report import relative_error
from simengine.check.states import STATE_ARRAYS
from simengine.model.model import Model

_DRAWS = 32  # with whole units, and as many with parts of them
_UNITS = (1.0, 2.0, 4.0)  # in the last place, by turns: poses at the end of a chain are off by a few
_MOVED = ("qpos", "qvel", "act", "ctrl")
_ENDS = (0.1, 0.25, 0.5, 2.0, 4.0, 10.0)  # factors on the tolerance of MuJoCo's convex collisions
# Times the iterations of MuJoCo's convex collisions, whose search for the depth of smooth shapes often ends early.
_LONGER = 8
_ALL = tuple(field.name for field in FORWARD)


class Perturbed:
    """MuJoCo's results with its numbers moved.

    Args:
        model: the model.
        oracle: MuJoCo on it, for the precision whose units are moved by.
        dtype: that precision.
    """

    def __init__(self, model: Model, oracle: Oracle, dtype: str):
        self._model, self._oracle, self._dtype = model, oracle, dtype

    def of_forward(self, evaluation: Evaluation) -> dict[str, float]:
        """Largest relative change of each field of `FORWARD`; infinite for those that depend on contacts or rows, where
        rounding decides which of these exist.

        In each of some draws, the state and all that engines store between stages move by one to four units in the last
        place, or by any part of these: poses, velocities, the inertia matrix, rows and forces. The tolerance of convex
        collisions varies, too, and their search goes on for longer.
        """
        oracle, state = self._oracle, evaluation.state
        largest = dict.fromkeys(_ALL, 0.0)
        if not oracle.is_clear({name: getattr(state, name) for name in STATE_ARRAYS}):
            self._take_contacts(largest)
        mj, data, rng = oracle.mj, oracle.data, np.random.default_rng(0)
        oracle.forward(state)
        terms = Terms.of(data, dense_jacobian(mj, data))
        sort = partial(_sort, evaluation.fields) if heeds_order(self._model) else None
        for draw in range(2 * _DRAWS):
            unit = Unit(self._dtype, rng, _UNITS[draw % len(_UNITS)], parts=draw >= _DRAWS)
            state.put_into(mj, data)
            for name in _MOVED:
                values = getattr(data, name)
                values[:] = unit.moved(values)
            if forward_with_rounded(mj, data, terms, unit, sort):
                oracle.complete()
                self._take(largest, evaluation, in_order=sort is not None)
            else:
                self._take_contacts(largest)
        for _ in self._other_searches():
            oracle.forward(state)
            self._take(largest, evaluation)
        return largest

    def of_step(self, before: Mapping[str, np.ndarray]) -> dict[str, float]:
        """Largest relative change of each field of `STEPPED` after a step, if the state before it moves, or searches of
        convex shapes end elsewhere."""
        rng = np.random.default_rng(0)
        names = [field.name for field in STEPPED]
        if not self._oracle.is_clear(before):
            return dict.fromkeys(names, np.inf)
        exact = self._stepped(before)
        largest = dict.fromkeys(names, 0.0)

        def take(found: Mapping[str, np.ndarray]) -> None:
            for name in names:
                largest[name] = max(largest[name], relative_error(found[name], exact[name])[1])

        for draw in range(_DRAWS):
            unit = Unit(self._dtype, rng, _UNITS[draw % len(_UNITS)])
            take(self._stepped({n: unit.moved(values) if n in _MOVED else values for n, values in before.items()}))
        for _ in self._other_searches():
            take(self._stepped(before))
        return largest

    def _stepped(self, before: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The fields of `STEPPED` after MuJoCo's step from a state."""
        mj, data = self._oracle.mj, self._oracle.data
        mujoco.mj_resetData(mj, data)
        for name, values in before.items():
            getattr(data, name)[:] = values
        mujoco.mj_step(mj, data)
        return {field.name: np.array(getattr(data, field.name)) for field in STEPPED}

    def _other_searches(self) -> Iterator[None]:
        """By turns, give MuJoCo's convex collisions other tolerances, and let their search go on for longer."""
        option = self._oracle.mj.opt
        tolerance, iterations = option.ccd_tolerance, int(option.ccd_iterations)
        try:
            for factor in _ENDS:
                option.ccd_tolerance = factor * tolerance
                yield
            option.ccd_tolerance, option.ccd_iterations = tolerance, _LONGER * iterations
            yield
        finally:
            option.ccd_tolerance, option.ccd_iterations = tolerance, iterations

    def _take(self, largest: dict[str, float], evaluation: Evaluation, *, in_order: bool = False) -> None:
        """Count the changes of what is in the oracle's data, whose contacts may have been put into MuJoCo's order."""
        found = collect(self._oracle.mj, self._oracle.data)
        arena = arena_errors(found, evaluation.fields)
        if arena["contact_geom"][1] or arena["nefc"][1]:
            self._take_contacts(largest)
            return
        told = (marks(of["contact_dist"], of["contact_pos"], of["contact_frame"]) for of in (found, evaluation.fields))
        order = contact_order(found["contact_geom"], *told)
        reordered = heeds_order(self._model) and not in_order and bool((np.diff(order) != 1).any())
        for field in FORWARD:
            if reordered and field.stage in AFTER_ROWS:
                continue  # the engine is compared with MuJoCo in its own order
            if field.space == "world":
                change = float(world_errors(self._model, field.name, found[field.name][None], [evaluation])[1][0])
            else:
                change = arena.get(field.name, (0.0, 0.0))[1]
            largest[field.name] = max(largest[field.name], change)

    def _take_contacts(self, largest: dict[str, float]) -> None:
        """There were other contacts or rows: what depends on them may be anything, and nothing else."""
        adhesion = ALONG_NORMALS if self._model.table.has_adhesion else ()
        for field in FORWARD:
            if field.space != "world" or field.stage in AFTER_ROWS or field.name in adhesion:
                largest[field.name] = np.inf


def _sort(fields: Mapping[str, np.ndarray], data: mujoco.MjData) -> None:
    """Put contacts into the order that they have in MuJoCo's fields, if they are of the same pairs of geoms.

    Moved numbers may give the contacts of a pair another order, and forces that heed it would differ by that alone.
    Which of two contacts is which cannot be told if they are nearer each other than numbers move.
    """
    contact = data.contact
    if contact.geom.tolist() == fields["contact_geom"].tolist():
        told = (fields[f"contact_{name}"] for name in ("dist", "pos", "frame"))
        order = contact_order(contact.geom, marks(*told), marks(contact.dist, contact.pos, contact.frame))
        put_in_order(data, order, {})
