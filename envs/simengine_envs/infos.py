"""Info of a vector environment: one array a key and, under the key with an underscore, a mask of who has it."""

from __future__ import annotations

from typing import Any

import numpy as np


def add_info(infos: dict[str, Any], values: dict[str, np.ndarray], mask: np.ndarray) -> None:
    """Merge the info of some worlds into `infos`, as `gymnasium.vector.VectorEnv` merges it world by world.

    Args:
        infos: what is added to.
        values: one entry for each world, (num_envs,), each; only those under the mask are taken.
        mask: (num_envs,) bool.
    """
    if not mask.any():
        return
    for key, value in values.items():
        if key not in infos:
            infos[key], infos[f"_{key}"] = np.zeros_like(value), np.zeros_like(mask)
        np.copyto(infos[key], value, where=mask)
        infos[f"_{key}"] |= mask


def add_final(infos: dict[str, Any], observations: np.ndarray, values: dict[str, np.ndarray], mask: np.ndarray) -> None:
    """Add `final_obs` and `final_info` of the worlds whose episode ended in this very step.

    Args:
        infos: what is added to.
        observations: (num_envs, size), the last ones of the ending episodes where the mask is true.
        values: info of the ending step, (num_envs,) each.
        mask: (num_envs,) bool, whose episode ended.
    """
    if not mask.any():
        return
    final_obs = np.full(len(mask), None, dtype=object)
    for world in np.flatnonzero(mask):
        final_obs[world] = observations[world].copy()
    final_info: dict[str, Any] = {}
    add_info(final_info, values, mask)
    infos.update(final_obs=final_obs, _final_obs=mask.copy(), final_info=final_info, _final_info=mask.copy())


def spread(values: dict[str, np.ndarray], worlds: np.ndarray, num_envs: int) -> dict[str, np.ndarray]:
    """Arrays of (len(worlds),) as arrays of (num_envs,), zero elsewhere."""
    result = {}
    for key, value in values.items():
        result[key] = np.zeros((num_envs, *value.shape[1:]), dtype=value.dtype)
        result[key][worlds] = value
    return result
