"""Event files of TensorBoard, written while a training runs."""

from __future__ import annotations

from pathlib import Path

from simengine_training.curve import Row
from simengine_training.errors import MissingExtraError

_NOT_DRAWN = {"update", "env_steps", "return_sum", "length_sum"}


class TensorBoard:
    """Writes rows of a training as scalars: those of updates under "train", those of evaluations under "evaluation".

    Args:
        folder: folder for the event files.

    Raises:
        MissingExtraError: the package tensorboardX is not installed.
    """

    def __init__(self, folder: Path):
        try:
            from tensorboardX import SummaryWriter
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                "event files of TensorBoard need the package 'tensorboardX', which is not installed; install it with: "
                "pip install 'simengine[tensorboard]'"
            ) from error
        self._writer = SummaryWriter(str(folder))

    def __call__(self, row: Row) -> None:
        """Write a row, at its number of environment steps."""
        group = "evaluation" if "return_std" in row else "train"
        for name, value in row.items():
            if name not in _NOT_DRAWN:
                self._writer.add_scalar(f"{group}/{name}", value, int(row["env_steps"]))

    def close(self) -> None:
        """Finish the files."""
        self._writer.close()
