"""Search for states that cover a model: as far as possible, every pair type touches and every joint limit is active."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import mujoco
import numpy as np

from simengine.check.oracle import Evaluation, Oracle, pair_type
from simengine.check.states import Sampler, State
from simengine.model.model import Model

Progress = Callable[[str, int, int], None]
"""Called as progress(what, done, total)."""

_RANDOM_SHARE, _SETTLED_SHARE = 0.4, 0.3  # fractions of the states; the others are thrown
_OF_ONE_DROP, _DROPS = 4, 10  # least states of a drop, and drops beyond which a drop has more


class Targets(NamedTuple):
    """The pair types and joint limits of a model.

    Attributes:
        pairs: candidate geom pairs by pair type, or some of them if there are many, each (n, 2).
        limits: (joint, side) of every joint limit that is enabled.
    """

    pairs: dict[str, np.ndarray]
    limits: tuple[tuple[int, int], ...]


class Found(NamedTuple):
    """The result of the search.

    Attributes:
        evaluations: the states that can be compared.
        left_out: number of states left out because rounding decides a contact or limit.
        by_rounding: of these, without a contact or limit that is too close to its margin.
        pairs_missed: pair types that no state touches.
        limits_missed: (joint, side) of limits that are active in no state.
    """

    evaluations: tuple[Evaluation, ...]
    left_out: int
    by_rounding: int
    pairs_missed: tuple[str, ...]
    limits_missed: tuple[tuple[int, int], ...]


def targets(model: Model) -> Targets:
    """The targets, from the model's candidate pairs and limited joints."""
    mj = model.mj
    by_type: dict[str, list[tuple[int, int]]] = {}
    examples = model.table.examples
    for geom1, geom2 in zip(examples["geom1"].tolist(), examples["geom2"].tolist(), strict=True):
        by_type.setdefault(pair_type(mj, geom1, geom2), []).append((geom1, geom2))
    limits = []
    joints = model.table.limit_id[model.table.limit_id < model.njnt]  # the others are tendons
    for joint in joints.tolist():
        both = mj.jnt_type[joint] != mujoco.mjtJoint.mjJNT_BALL
        limits += [(joint, side) for side in range(1 + both)]
    return Targets({name: np.array(found) for name, found in by_type.items()}, tuple(limits))


def find_states(
    model: Model, oracle: Oracle, sampler: Sampler, count: int, tries: int, progress: Progress | None = None
) -> Found:
    """Draw `count` states, then up to `tries` more for each pair type and limit that they miss.

    Args:
        model: the model, for its candidate pairs and limits.
        oracle: MuJoCo on the same model.
        sampler: draws the states.
        count: states that are always drawn.
        tries: most further states for each missing pair type and limit.
        progress: called for every state.
    """
    wanted = targets(model)
    search, before = _Search(oracle), oracle.by_rounding
    for done, state in enumerate(_mixture(sampler, wanted, count), start=1):
        search.take(state)
        if progress:
            progress("states", done, count)
    missed_pairs = [name for name in wanted.pairs if not search.reaches(name, sampler, wanted.pairs[name], tries)]
    missed_limits = [limit for limit in wanted.limits if not search.reaches_limit(limit, sampler, tries)]
    rounded = oracle.by_rounding - before
    return Found(tuple(search.evaluations), search.left_out, rounded, tuple(missed_pairs), tuple(missed_limits))


class _Search:
    """The states so far, and the pair types and limits that they reach."""

    def __init__(self, oracle: Oracle):
        self._oracle = oracle
        self.evaluations: list[Evaluation] = []
        self.left_out = 0
        self._pairs: set[str] = set()
        self._limits: set[tuple[int, int]] = set()

    def take(self, state: State) -> Evaluation | None:
        """Evaluate a state and add it, unless rounding could decide what it touches."""
        evaluation = self._oracle.evaluate(state)
        if evaluation is None:
            self.left_out += 1
            return None
        self.keep(evaluation)
        return evaluation

    def keep(self, evaluation: Evaluation) -> None:
        """Add an evaluated state."""
        self.evaluations.append(evaluation)
        self._pairs |= set(evaluation.touched.pairs)
        self._limits |= evaluation.touched.limits

    def reaches(self, name: str, sampler: Sampler, pairs: np.ndarray, tries: int) -> bool:
        """Throw geoms of a pair type at each other, up to `tries` times, until they touch; whether they do."""
        for _ in range(tries):
            if name in self._pairs:
                break
            self._try(sampler.thrown(*pairs[sampler.rng.integers(len(pairs))].tolist()), name)
        return name in self._pairs

    def reaches_limit(self, limit: tuple[int, int], sampler: Sampler, tries: int) -> bool:
        """Put a joint beyond its limit, up to `tries` times, until the limit is active; whether it is."""
        for _ in range(tries):
            if limit in self._limits:
                break
            self._try(sampler.beyond(*limit), limit)
        return limit in self._limits

    def _try(self, state: State, wanted: str | tuple[int, int]) -> None:
        """Add a state only if it reaches the wanted pair type or limit."""
        evaluation = self._oracle.evaluate(state)
        if evaluation is None:
            self.left_out += 1
        elif wanted in evaluation.touched.pairs or wanted in evaluation.touched.limits:
            self.keep(evaluation)


def _mixture(sampler: Sampler, wanted: Targets, count: int) -> Iterator[State]:
    """`count` states of all kinds; random ones take the place of kinds that the model cannot have."""
    num_settled = round(_SETTLED_SHARE * count)
    left = count
    of_one = max(_OF_ONE_DROP, num_settled // _DROPS)
    for first in range(0, num_settled, of_one):
        for state in sampler.settled(min(of_one, num_settled - first)):
            left -= 1
            yield state
    names = sorted(wanted.pairs)
    if names:
        for i in range(left - round(_RANDOM_SHARE * count)):
            pairs = wanted.pairs[names[i % len(names)]]
            left -= 1
            yield sampler.thrown(*pairs[sampler.rng.integers(len(pairs))].tolist())
    for _ in range(left):
        yield sampler.random()
