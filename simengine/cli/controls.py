"""Random controls: a few sets, which are drawn before steps are timed and then applied in turn."""

from __future__ import annotations

import numpy as np

from simengine import Model

SETS = 10


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
