"""Controls of a run: random ones, a few sets that are drawn before steps are timed, or those of a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from simengine import Model
from simengine.cli.options.errors import UsageError

SETS = 10
_CHECKED_TOGETHER = 2**20  # numbers of a file that are in memory at one time while they are checked


def random_controls(model: Model, num_worlds: int, seed: int, sets: int = SETS) -> np.ndarray:
    """Draw controls uniformly from each actuator's control range, or from -1 to 1 where it has none.

    Args:
        model: the model.
        num_worlds: number of worlds.
        seed: equal seeds give equal controls.
        sets: number of sets.

    Returns:
        (sets, num_worlds, nu) float64.
    """
    limited = np.asarray(model.mj.actuator_ctrllimited, dtype=bool)
    low, high = np.where(limited[:, None], model.mj.actuator_ctrlrange, (-1.0, 1.0)).T
    return np.random.default_rng(seed).uniform(low, high, (sets, num_worlds, model.mj.nu))


def read_controls(path: Path, model: Model, dtype: str) -> np.ndarray:
    """Open a file of controls, `.npy`, without reading it into memory.

    Args:
        path: the file.
        model: the model.
        dtype: "float32" or "float64", in which the controls must be finite.

    Returns:
        Controls as in the file: (nu,) for all steps and worlds, (steps, nu) for all worlds, or
        (steps, num_worlds, nu).

    Raises:
        UsageError: there is no such file, or it does not hold finite controls of the model.
    """
    if not path.is_file():
        raise UsageError(f"no controls at {str(path)!r}; give a .npy file that numpy.save wrote")
    try:
        controls = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"{str(path)!r} is no .npy file of controls ({reason}); write one with numpy.save") from error
    shapes = f"({model.nu},), (steps, {model.nu}) or (steps, worlds, {model.nu})"
    if not isinstance(controls, np.ndarray) or controls.dtype.kind not in "biuf":
        raise UsageError(f"{str(path)!r} holds no array of real numbers; give controls of shape {shapes}")
    if controls.ndim not in (1, 2, 3) or controls.shape[-1] != model.nu or 0 in controls.shape[:-1]:
        raise UsageError(
            f"the controls in {str(path)!r} have shape {controls.shape}; model {model.name!r} takes {shapes}"
        )
    _check_finite(path, controls, dtype)
    return controls


def check_size(path: Path, controls: np.ndarray, steps: int, worlds: int) -> None:
    """Raise UsageError if a file's controls are those of other numbers of steps or worlds than a run has."""
    if controls.ndim > 1 and len(controls) != steps:
        raise UsageError(
            f"{str(path)!r} has controls of {len(controls)} steps and the run has {steps}; give --steps {len(controls)}"
        )
    if controls.ndim == 3 and controls.shape[1] != worlds:
        raise UsageError(
            f"{str(path)!r} has controls of {controls.shape[1]} worlds and the run has {worlds}; give --worlds "
            f"{controls.shape[1]}"
        )


def _check_finite(path: Path, controls: np.ndarray, dtype: str) -> None:
    rows = np.atleast_2d(controls)
    at_once = max(1, _CHECKED_TOGETHER // max(1, rows[0].size))
    for first in range(0, len(rows), at_once):
        with np.errstate(over="ignore"):
            bad = ~np.isfinite(rows[first : first + at_once].astype(dtype))
        if bad.any():
            where = np.argwhere(bad)[0] + np.array([first] + [0] * (rows.ndim - 1))
            index = where.tolist()[rows.ndim - controls.ndim :]
            value = controls[tuple(index)]
            raise UsageError(f"the controls in {str(path)!r} hold {value} at {index}; give numbers finite in {dtype}")
