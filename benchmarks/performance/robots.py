"""Robots of public packages beside MuJoCo Warp on a GPU, and beside `mujoco.rollout` on a CPU."""

from __future__ import annotations

from .markdown import NONE, ratio, speed, table
from .results import Result, Row

SIZES = (512, 8192)
_OURS, _PEER = "simengine", "mujoco-warp"

ON_CPU = (64, 1024)
ENOUGH = 1.5
_CPU_PEER = "mujoco.rollout"


def robots_table(result: Result, later: Result) -> str:
    """Steps a second of each robot and their ratio to MuJoCo Warp's, errors, and simengine's speed in a later run."""
    columns = ["robot"]
    for worlds in SIZES:
        columns += [f"{worlds:,} worlds", "over MuJoCo Warp", "later, alone"]
    columns += ["error", "error of MuJoCo Warp"]
    rows, again = _by_case(result), _by_case(later)
    lines = []
    for robot in sorted({row["model"] for row in result["rows"]}):
        cells = [robot]
        for worlds in SIZES:
            ours, peer, alone = (
                rows.get((robot, worlds, _OURS)),
                rows.get((robot, worlds, _PEER)),
                again.get((robot, worlds, _OURS)),
            )
            cells += [_speed(ours), _ratio(ours, peer), _speed(alone)]
        errors = [_error([rows.get((robot, worlds, engine)) for worlds in SIZES]) for engine in (_OURS, _PEER)]
        lines.append([*cells, *errors])
    return table(columns, lines)


def again_table(result: Result) -> str:
    """Steps a second of robots that both engines stepped in one run, and their ratio, the least first."""
    columns = ["robot"]
    for worlds in SIZES:
        columns += [f"{worlds:,} worlds", "MuJoCo Warp", "ratio"]
    rows, lines = _by_case(result), []
    for robot, _ in sorted(_least_ratios(result, _PEER).items(), key=lambda item: item[1]):
        cells = [robot]
        for worlds in SIZES:
            ours, peer = (rows.get((robot, worlds, engine)) for engine in (_OURS, _PEER))
            cells += [_speed(ours), _speed(peer), _ratio(ours, peer)]
        lines.append(cells)
    return table(columns, lines)


def cpu_table(result: Result) -> str:
    """Steps a second of each model and of `mujoco.rollout`, their ratio, and simengine's error, the slowest first."""
    columns = ["model"]
    for worlds in ON_CPU:
        columns += [f"{worlds:,} worlds", "mujoco.rollout", "ratio"]
    rows, lines = _by_case(result), []
    for model, _ in sorted(_least_ratios(result).items(), key=lambda item: item[1]):
        cells = [model]
        for worlds in ON_CPU:
            ours, peer = (rows.get((model, worlds, engine)) for engine in (_OURS, _CPU_PEER))
            cells += [_speed(ours), _speed(peer), _ratio(ours, peer)]
        lines.append([*cells, _error([rows.get((model, worlds, _OURS)) for worlds in ON_CPU])])
    return table([*columns, "error"], lines)


def cpu_held(result: Result) -> str:
    """For how many models the ratio is enough at both numbers of worlds, such as "23 of 38 models"."""
    least = list(_least_ratios(result).values())
    return f"{sum(one >= ENOUGH for one in least)} of {len(least)} models"


def cpu_lost(result: Result) -> str:
    """The models that are slower than with the peer at one number of worlds or more, such as "aloha_pot"."""
    return ", ".join(sorted(model for model, one in _least_ratios(result).items() if one < 1)) or "none"


def cpu_outside(result: Result) -> str:
    """The cases of which a sampled world is further from MuJoCo than the tolerance, such as "dog at 1,024 worlds"."""
    cases = [f"{row['model']} at {row['worlds']:,} worlds" for row in result["rows"] if row.get("agrees") is False]
    return ", ".join(sorted(cases)) or "none"


def _least_ratios(result: Result, peer: str = _CPU_PEER) -> dict[str, float]:
    least: dict[str, float] = {}
    for row in result["rows"]:
        if row["engine"] == peer:
            least[row["model"]] = min(row["ratio"], least.get(row["model"], row["ratio"]))
    return least


def ratios(result: Result, worlds: int) -> list[float]:
    """Speeds of simengine over those of MuJoCo Warp, of each robot for which both have one, the least first."""
    rows = _by_case(result)
    found = []
    for robot in {row["model"] for row in result["rows"]}:
        ours, peer = rows.get((robot, worlds, _OURS)), rows.get((robot, worlds, _PEER))
        if ours and peer and "steps_per_s" in ours and "steps_per_s" in peer:
            found.append(ours["steps_per_s"] / peer["steps_per_s"])
    return sorted(found)


def lost(result: Result) -> str:
    """How many robots are slower than with MuJoCo Warp, such as "7 of 23 with 512 worlds and 13 of 22 with 8,192"."""
    counts = [(sum(one < 1 for one in ratios(result, worlds)), len(ratios(result, worlds))) for worlds in SIZES]
    (few, of_few), (many, of_many) = counts
    return f"{few} of {of_few} with {SIZES[0]:,} worlds and {many} of {of_many} with {SIZES[1]:,}"


def with_later(result: Result, later: Result) -> Result:
    """A result with simengine's rows of a later run in place of its own."""
    peers = [row for row in result["rows"] if row["engine"] != _OURS]
    return {**result, "rows": [*peers, *later["rows"]]}


def _by_case(result: Result) -> dict[tuple[str, int, str], Row]:
    return {(row["model"], row["worlds"], row["engine"]): row for row in result["rows"]}


def _speed(row: Row | None) -> str:
    return speed(row["steps_per_s"]) if row and "steps_per_s" in row else NONE


def _ratio(ours: Row | None, peer: Row | None) -> str:
    if not ours or not peer or "steps_per_s" not in ours or "steps_per_s" not in peer:
        return NONE
    return ratio(ours["steps_per_s"] / peer["steps_per_s"])


def _error(rows: list[Row | None]) -> str:
    errors = [row["qacc_error_median"] for row in rows if row and "qacc_error_median" in row]
    return f"{max(errors):.0e}" if errors else NONE
