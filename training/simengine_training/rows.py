"""The row of an update and that of an evaluation, made from what the programs found, which is checked first."""

from __future__ import annotations

import numpy as np

from simengine_training import curve
from simengine_training.arguments import Arguments
from simengine_training.curve import Row
from simengine_training.errors import TrainingError
from simengine_training.iteration import Report
from simengine_training.trial import MAX_STEPS, Trial


def update_row(found: Report, updates: int, arguments: Arguments, earlier: list[Row]) -> Row:
    """The row of an update.

    Args:
        found: what its iteration told, as arrays of NumPy.
        updates: number of updates so far.
        arguments: arguments of the training.
        earlier: the rows before.

    Raises:
        TrainingError: the loss is not finite, or worlds stood still.
    """
    parts = {name: float(value) for name, value in found.parts.items()}
    if not np.isfinite(list(parts.values())).all():
        raise TrainingError(
            f"update {updates} made the loss non-finite; lower learning_rate or max_grad_norm, "
            "or look for rewards that are not finite"
        )
    _check_stalled(int(found.episodes.stalled), arguments)
    row: Row = {
        "update": updates,
        "env_steps": updates * arguments.batch_size,
        "episodes": int(found.episodes.number),
        "return_sum": float(found.episodes.returns),
        "length_sum": int(found.episodes.lengths),
    }
    latest = [*earlier[-curve.MEAN_OVER :], row]
    row["return_mean"] = curve.latest_mean(latest, "return_sum")
    row["length_mean"] = curve.latest_mean(latest, "length_sum")
    return row | parts


def evaluation_row(found: Trial, updates: int, arguments: Arguments) -> Row:
    """The row of an evaluation of the policy after some updates.

    Raises:
        TrainingError: an episode has no end, worlds stood still, or returns are not finite.
    """
    if found.running.any():
        raise TrainingError(
            f"an episode of {arguments.env_id} has not ended after {MAX_STEPS} steps; give the environment a time "
            "limit, or train with eval_episodes=0"
        )
    _check_stalled(int(found.stalled.sum()), arguments)
    returns = np.asarray(found.returns, np.float64)
    if bad := int((~np.isfinite(returns)).sum()):
        raise TrainingError(
            f"{bad} of {len(returns)} episodes of the evaluation after update {updates} have returns that are not "
            f"finite; look for rewards of {arguments.env_id} that are not finite"
        )
    return {
        "update": updates,
        "env_steps": updates * arguments.batch_size,
        "return_mean": float(returns.mean()),
        "return_std": float(returns.std()),
        "length_mean": float(found.lengths.mean()),
    }


def _check_stalled(count: int, arguments: Arguments) -> None:
    """Raise TrainingError if worlds stood still."""
    if count:
        raise TrainingError(
            f"worlds of {arguments.env_id} stood still in {count} steps, since the memory for contacts or constraint "
            "rows was full; give the environment more room by its arguments nconmax and njmax"
        )
