"""Robots of public packages beside a peer: MuJoCo Warp on a GPU, `mujoco.rollout` on a CPU."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from simengine.model.pair_types import PAIR_TYPES

from .markdown import NONE, percent, ratio, speed, table
from .results import Result, Row

OURS = "simengine"
_PAIRS = "|".join(PAIR_TYPES)
_GROUPS = {
    "solvers": re.compile("finish|solve|noslip|constraint|gather|scatter|islands"),
    "contacts": re.compile(f"collision|list|depth|touch|counting|narrow|position|scan|{_PAIRS}"),
    "dynamics": re.compile(""),
}
"""What kernels do, by their names; the first that fits."""


@dataclass(frozen=True)
class Peer:
    """An engine beside which simengine was measured.

    Attributes:
        engine: its name in results.
        title: its name on the page.
        enough: the ratio of speeds at which a robot counts as fast enough.
        with_error: whether the table has the peer's error, too.
    """

    engine: str
    title: str
    enough: float
    with_error: bool


WARP = Peer("mujoco-warp", "MuJoCo Warp", enough=3.0, with_error=True)
ROLLOUT = Peer("mujoco.rollout", "mujoco.rollout", enough=1.5, with_error=False)
BATCH = Peer("mujoco.batch", "mujoco.batch", enough=1.5, with_error=False)


class Beside:
    """A result with both engines, which may lack rows: what the page says of it.

    Args:
        result: the result file.
        peer: the other engine.
    """

    def __init__(self, result: Result, peer: Peer) -> None:
        self._result, self._peer = result, peer
        self._rows = {(row["model"], row["worlds"], row["engine"]): row for row in result["rows"]}
        self._sizes = sorted({worlds for _, worlds, _ in self._rows})

    def table(self) -> str:
        """The ratio and both speeds for each number of worlds, and errors. The least ratio stands first."""
        engines = (OURS, self._peer.engine)[: 1 + self._peer.with_error]
        errors = ["error", f"error of {self._peer.title}"][: len(engines)]
        columns = ["model", *(f"{worlds:,} worlds" for worlds in self._sizes), *errors]
        lines = [
            [
                model,
                *(self._speeds(model, worlds) for worlds in self._sizes),
                *(self._error(model, engine) for engine in engines),
            ]
            for model in self._models
        ]
        return table(columns, lines)

    def ratios(self) -> dict[tuple[str, int], float]:
        """The ratio of the speeds of each model and number of worlds in which both engines have a result."""
        every = zip(self._cases, self._every_ratio(), strict=True)
        return {case: found for case, found in every if found == found}  # without those that are not a number

    def held(self) -> str:
        """For how many models every ratio that was measured is enough, such as "23 of 38 models"."""
        least = [min(found) for model in self._models if (found := self._ratios(model))]
        return f"{sum(one >= self._peer.enough for one in least)} of {len(least)} models"

    def also(self) -> str:
        """A sentence on a peer that has no table; empty if it was not measured."""
        if not (ratios := self.ratios()):
            return ""
        name, median = self._peer.title, statistics.median(ratios.values())
        return (
            f"`{name}` ran in the same commands: simengine is at least {self._peer.enough:g} times as fast for "
            f"{self.held()},\nby the median of all cases {ratio(median)}."
        )

    def lost(self) -> str:
        """The cases that are slower than with the peer, such as "aloha_pot at 64 worlds"; "none" without one."""
        cases = zip(self._cases, self._every_ratio(), strict=True)
        return ", ".join(f"{model} at {worlds:,} worlds" for (model, worlds), found in cases if found < 1) or "none"

    def outside(self, engine: str) -> str:
        """In how many cases of an engine a sampled world is further from MuJoCo than the tolerance."""
        agree = [row["agrees"] for (_, _, of), row in self._rows.items() if of == engine and "agrees" in row]
        return f"{agree.count(False)} of {len(agree)} cases"

    def without_result(self) -> str:
        """The cases that an engine did not finish, each with the reason, as a paragraph; empty without one."""
        titles = {OURS: OURS, self._peer.engine: self._peer.title}
        lines = [
            f"- {title}, {model}, {worlds:,} worlds: {self._reason(model, worlds, engine)}"
            for model, worlds in self._cases
            for engine, title in titles.items()
            if self._speed(model, worlds, engine) is None
        ]
        return "\n".join(["These cases have no result:", "", *lines]) if lines else ""

    def changes(self) -> str:
        """What the command changed of a model for all engines, as a paragraph; empty if it changed nothing."""
        lines = [f"- {said}" for said in self._result.get("changes", ())]
        return "\n".join(["Changed for both engines:", "", *lines]) if lines else ""

    def missed(self, kernels: Result) -> str:
        """A list of the cases whose ratio is not enough, each with what its kernels do and the longest of them.

        Args:
            kernels: a result of `benchmarks.robot_kernels`. A case without a row there has its ratio alone.
        """
        known = {(row["model"], row["worlds"]): row for row in kernels["rows"] if "kernels_us" in row}
        lines = []
        for case, found in zip(self._cases, self._every_ratio(), strict=True):
            if found < self._peer.enough:
                lines.append(f"- {case[0]}, {case[1]:,} worlds, {ratio(found)}{_shares(known.get(case))}")
        return "\n".join(lines) or "- none"

    @cached_property
    def _models(self) -> list[str]:
        models = {model for model, _, _ in self._rows}
        return sorted(models, key=lambda model: (min(self._ratios(model), default=float("inf")), model))

    @cached_property
    def _cases(self) -> list[tuple[str, int]]:
        return [(model, worlds) for model in self._models for worlds in self._sizes]

    def _every_ratio(self) -> Iterator[float]:
        """The ratio of each case; not a number where an engine has no speed, which compares as false."""
        for case in self._cases:
            found = self._ratio(*case)
            yield float("nan") if found is None else found

    def _ratios(self, model: str) -> list[float]:
        return [found for worlds in self._sizes if (found := self._ratio(model, worlds)) is not None]

    def _ratio(self, model: str, worlds: int) -> float | None:
        ours, peer = (self._speed(model, worlds, engine) for engine in (OURS, self._peer.engine))
        return None if ours is None or peer is None else ours / peer

    def _speeds(self, model: str, worlds: int) -> str:
        both = (_or_none(speed, self._speed(model, worlds, engine)) for engine in (OURS, self._peer.engine))
        return f"{_or_none(ratio, self._ratio(model, worlds))} ({', '.join(both)})"

    def _speed(self, model: str, worlds: int, engine: str) -> float | None:
        return self._rows.get((model, worlds, engine), {}).get("steps_per_s")

    def _error(self, model: str, engine: str) -> str:
        rows = [self._rows.get((model, worlds, engine), {}) for worlds in self._sizes]
        errors = [row["qacc_error_median"] for row in rows if "qacc_error_median" in row]
        return f"{max(errors):.0e}" if errors else NONE

    def _reason(self, model: str, worlds: int, engine: str) -> str:
        row, absent = self._rows.get((model, worlds, engine), {}), self._result.get("absent", {})
        said = row.get("error") or absent.get(model) or absent.get(engine)
        return f'"{said}"' if said else "the command ended before it had a result"


def _shares(row: Row | None) -> str:
    """What the kernels of a case do, by their shares of the time of all, and the longest of them."""
    if row is None:
        return ""
    kernels: dict[str, float] = row["kernels_us"]
    whole, groups = sum(kernels.values()), dict.fromkeys(_GROUPS, 0.0)
    for name, us in kernels.items():
        groups[next(group for group, names in _GROUPS.items() if names.search(name))] += us
    most_first = sorted(groups.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{group} {percent(us / whole)}" for group, us in most_first)
    longest = max(kernels, key=lambda name: kernels[name])
    return f": {shown}; `{longest}` {percent(kernels[longest] / whole)}"


def _or_none(shown: Callable[[float], str], number: float | None) -> str:
    return NONE if number is None else shown(number)


def alone(result: Result) -> str:
    """Steps a second of every robot, without a peer.

    Args:
        result: a result of `benchmarks.robot_kernels`.
    """
    sizes = sorted({row["worlds"] for row in result["rows"]})
    found = {(row["model"], row["worlds"]): 1e6 * row["worlds"] / row["us_per_step"] for row in result["rows"]}
    models = sorted({model for model, _ in found})
    lines = [[model, *(_or_none(speed, found.get((model, worlds))) for worlds in sizes)] for model in models]
    return table(["model", *(f"{worlds:,} worlds" for worlds in sizes)], lines)
