"""The table of the speeds of single models beside `mujoco.rollout` on a CPU."""

from __future__ import annotations

from .markdown import ratio, speed, table
from .results import Result, Row


def cpu_table(result: Result) -> str:
    """Steps per second of simengine and of MuJoCo, ratio of the medians, and range of the ratios of paired repeats."""
    columns = [
        "model",
        "worlds",
        "executor",
        "simengine",
        "(range)",
        "mujoco.rollout",
        "(range)",
        "ratio",
        "(range)",
        "error",
    ]
    lines = []
    for row in result["rows"]:
        engines = [_with_range(row, "steps_per_s"), _with_range(row, "peer_steps_per_s")]
        cells = [cell for engine in engines for cell in engine]
        pairs = [
            ours / theirs for ours, theirs in zip(row["all_steps_per_s"], row["all_peer_steps_per_s"], strict=True)
        ]
        cells += [ratio(row["ratio"]), f"{ratio(min(pairs))} to {ratio(max(pairs))}", f"{row['qacc_error']:.0e}"]
        lines.append([row["model"], f"{row['worlds']:,}", f"`{row['executor']}`", *cells])
    return table(columns, lines)


def repeats(result: Result) -> int:
    """The number of repeats of each row of a result.

    Raises:
        ValueError: the rows have different numbers of repeats.
    """
    (count,) = {row["repeats"] for row in result["rows"]}
    return int(count)


def lost(result: Result) -> str:
    """The cases in which the median speed of the peer is higher, such as "humanoid at 64 worlds, ..."."""
    return ", ".join(f"{row['model']} at {row['worlds']:,} worlds" for row in result["rows"] if row["ratio"] < 1)


def _with_range(row: Row, name: str) -> tuple[str, str]:
    every = row[f"all_{name}"]
    return speed(row[name]), f"{speed(min(every))} to {speed(max(every))}"
