"""Robots of public packages beside MuJoCo Warp."""

from __future__ import annotations

from .markdown import NONE, ratio, speed, table
from .results import Result, Row

SIZES = (512, 8192)
_OURS, _PEER = "simengine", "mujoco-warp"


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
