"""Tables of the speeds of single models, with MuJoCo Warp on a GPU and with `mujoco.rollout` on a CPU."""

from __future__ import annotations

from collections.abc import Iterable

from .markdown import NONE, ratio, speed, table
from .results import Result, Row


def gpu_table(ours: Result, peer: Result) -> str:
    """Steps per second by model and number of worlds, and their ratios to MuJoCo Warp's."""
    sizes = sorted({row["worlds"] for row in ours["rows"]})
    columns = ["model", *(f"{size:,} worlds" for size in sizes), "kernels a step", "error", "error of MuJoCo Warp"]
    lines = []
    for model, rows in _by_model(ours).items():
        cells = [_gpu_cell(rows.get(size)) for size in sizes]
        kernels = " / ".join(f"{rows[size]['kernels_per_step']:.0f}" for size in sizes if "error" not in rows[size])
        lines.append([model, *cells, kernels, _worst(rows.values()), _worst(_by_model(peer)[model].values())])
    return table(columns, lines)


def without_result(ours: Result, peer: Result) -> str:
    """A list of the cases that an engine did not finish, with its messages."""
    sizes = {row["worlds"] for row in ours["rows"]}
    failed = [(engine, row) for engine, of in (("simengine", ours), ("MuJoCo Warp", peer)) for row in of["rows"]]
    return "\n".join(
        f'- {engine}, {row["model"]}, {row["worlds"]:,} worlds: "{row["error"]}"'
        for engine, row in failed
        if "error" in row and row["worlds"] in sizes
    )


def with_resets(ours: Result) -> str:
    """A list of the cases in which worlds blew up and were reset, or nothing."""
    said = {True: "MuJoCo resets this world, too", False: "MuJoCo does not reset this world"}
    return "\n".join(
        f'- {row["model"]}, {row["worlds"]:,} worlds: {row["resets"]:,} resets; the first: "{row["first_reset"]}"; '
        f"{said[row['mujoco_resets_it']]}."
        for row in ours["rows"]
        if row.get("resets")
    )


def drift(runs: Iterable[dict[tuple[str, int], float]]) -> float:
    """The largest difference between runs of the same case: largest time divided by smallest, minus one."""
    cases: dict[tuple[str, int], list[float]] = {}
    for run in runs:
        for case, time in run.items():
            cases.setdefault(case, []).append(time)
    return max(max(times) / min(times) for times in cases.values() if len(times) > 1) - 1


def times(result: Result) -> dict[tuple[str, int], float]:
    """Duration of a step [us], by model and number of worlds."""
    return {(row["model"], row["worlds"]): row["us_per_step"] for row in result["rows"] if "us_per_step" in row}


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


def _gpu_cell(row: Row | None) -> str:
    if row is None or "error" in row:
        return NONE
    return f"{speed(row['steps_per_s'])} ({ratio(row['ratio']) if 'ratio' in row else NONE})"


def _worst(rows: Iterable[Row]) -> str:
    errors = [row["qacc_error"] for row in rows if row.get("qacc_error") is not None]
    return f"{max(errors):.0e}"


def _by_model(result: Result) -> dict[str, dict[int, Row]]:
    found: dict[str, dict[int, Row]] = {}
    for row in result["rows"]:
        found.setdefault(row["model"], {})[row["worlds"]] = row
    return found
