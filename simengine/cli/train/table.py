"""Tables of `simengine train`: what came out, and which presets there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from simengine.cli.options.settings import presets_of
from simengine_configs import preset_summary

if TYPE_CHECKING:
    from simengine_training import Result


def listed() -> Table:
    """All presets of trainings."""
    table = Table("preset", "what it trains")
    for name in presets_of("train"):
        table.add_row(name, preset_summary("train", name))
    return table


def table_of(results: list[Result], seconds: float) -> Table:
    """Results of trainings.

    Args:
        results: the trainings.
        seconds: time of the whole call.
    """
    table = Table(
        "environment", "seed", "environment steps", "time [s]", "best return", "of steps", "folder",
        caption=f"{seconds:.1f} s in all; each folder holds policy.npz, curve.png, curve.csv and checkpoints",
    )  # fmt: skip
    for result in results:
        arguments, best = result.summary["arguments"], result.summary.get("best")
        table.add_row(
            arguments["env_id"],
            str(arguments["seed"]),
            f"{result.summary['env_steps']:,}" + ("" if result.finished else " so far"),
            f"{result.seconds:.1f}",
            f"{best['return_mean']:.1f} +- {best['return_std']:.1f}" if best else "not evaluated",
            f"{best['env_steps']:,}" if best else "",
            str(result.folder),
        )
    return table
