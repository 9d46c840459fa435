"""Infos of a vector environment: an array for each key, and under "_" + key a mask of the worlds that have it."""

from __future__ import annotations

from typing import Any

import numpy as np


def add_info(infos: dict[str, Any], values: dict[str, np.ndarray], mask: np.ndarray) -> None:
    """Merge the infos of some worlds into `infos`, as `gymnasium.vector.VectorEnv` does world by world.

    Args:
        infos: infos of the vector environment, which are changed.
        values: arrays (num_envs, ...) by key. Only entries where the mask is true are used.
        mask: (num_envs,) bool.
    """
    if not mask.any():
        return
    for key, value in values.items():
        if key not in infos:
            infos[key], infos[f"_{key}"] = np.zeros_like(value), np.zeros_like(mask)
        np.copyto(infos[key], value, where=mask.reshape(-1, *(1,) * (value.ndim - 1)))
        infos[f"_{key}"] |= mask


def add_final(infos: dict[str, Any], observations: np.ndarray, values: dict[str, np.ndarray], mask: np.ndarray) -> None:
    """Add `final_obs` and `final_info` of the worlds whose episode ended in this step.

    Args:
        infos: infos of the vector environment, which are changed.
        observations: (num_envs, size), with the last observation of an episode where the mask is true.
        values: infos of the last step of the episodes, arrays (num_envs,) by key.
        mask: (num_envs,) bool, true for worlds whose episode ended.
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
    """Copy arrays (len(worlds),) of some worlds into arrays (num_envs,) that are zero for the other worlds."""
    result = {}
    for key, value in values.items():
        result[key] = np.zeros((num_envs, *value.shape[1:]), dtype=value.dtype)
        result[key][worlds] = value
    return result
