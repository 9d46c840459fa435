"""The table of heaps of bodies at rest: simengine, MuJoCo Warp and MuJoCo's C."""

from __future__ import annotations

from collections.abc import Sequence

from .markdown import NONE, table, three_digits
from .results import Result, Row

Cell = tuple[int, int]
"""Number of bodies of a heap, and number of worlds."""


def ours(results: Sequence[Result]) -> dict[Cell, list[Row]]:
    """Rows by cell. A cell has several rows if it was measured several times."""
    found: dict[Cell, list[Row]] = {}
    for result in results:
        for row in result["rows"]:
            found.setdefault((row["bodies"], row["worlds"]), []).append(row)
    return {cell: found[cell] for cell in sorted(found, key=lambda cell: (cell[1], cell[0]))}


def theirs(peer: Result) -> dict[Cell, Row]:
    """MuJoCo Warp's rows by cell."""
    return {(int(row["model"].rpartition(":")[2]), row["worlds"]): row for row in peer["rows"]}


def heaps_table(results: Sequence[Result], peer: Result) -> str:
    """Duration of a step of all worlds [ms], and number of contacts of a world at that time."""
    here, there = ours(results), theirs(peer)
    lines = []
    for (bodies, worlds), rows in here.items():
        warp, c = there.get((bodies, worlds), {}), rows[0]["mujoco"].get("step")
        contacts = f"{rows[0]['contacts']:,} / " + (f"{warp['contacts_per_world']:,.0f}" if _done(warp) else NONE)
        warps = "no memory" if "error" in warp else three_digits(warp["us_per_step"] / 1e3) if warp else NONE
        executor = f"`{rows[0]['executor']}`"
        times = " to ".join(sorted({three_digits(1e3 * row["step"]) for row in rows}, key=float))
        mujoco = three_digits(1e3 * c) if c else NONE
        lines.append([f"{bodies:,}", f"{worlds:,}", executor, times, warps, mujoco, contacts])
    columns = ["bodies", "worlds", "executor", "simengine", "MuJoCo Warp", "MuJoCo C, one thread", "contacts"]
    return table(columns, lines)


def ratios(results: Sequence[Result], peer: Result) -> dict[tuple[str, Cell], float | None]:
    """Times of MuJoCo Warp and MuJoCo C divided by simengine's, by peer and cell; None if the peer failed."""
    found: dict[tuple[str, Cell], float | None] = {}
    there = theirs(peer)
    for cell, rows in ours(results).items():
        if warp := there.get(cell):
            found["MuJoCo Warp", cell] = 1e-6 * warp["us_per_step"] / rows[0]["step"] if _done(warp) else None
        if c := rows[0]["mujoco"].get("step"):
            found["MuJoCo C", cell] = c / rows[0]["step"]
    return found


def lost(results: Sequence[Result], peer: Result) -> str:
    """Where MuJoCo Warp is faster, such as "10 bodies in 1 world", or "none"."""
    slower = [cell for (name, cell), one in ratios(results, peer).items() if name == "MuJoCo Warp" and one and one < 1]
    said = (f"{bodies:,} bodies in {worlds:,} world{'s' if worlds > 1 else ''}" for bodies, worlds in slower)
    return "; ".join(said) or "none"


def failure(peer: Result) -> str:
    """The message of MuJoCo Warp for a cell that it could not run."""
    (error,) = (row["error"] for row in peer["rows"] if "error" in row)
    return str(error)


def _done(row: Row) -> bool:
    return bool(row) and "error" not in row
