"""Seeds and reset masks of a vector environment."""

from __future__ import annotations

from typing import Any

import numpy as np


class Seeds:
    """The seed of every world of a vector environment.

    Attributes:
        values: (num_envs,) uint32.
    """

    def __init__(self, num_envs: int):
        self.values: np.ndarray = np.zeros(num_envs, np.uint32)

    def take(self, seed: int | list[int | None] | None, mask: np.ndarray, first: bool) -> np.ndarray:
        """Take seeds for some worlds.

        Args:
            seed: seed of world 0, while world i gets `seed + i`; or a list with a seed or None for each world; or None
                to give none.
            mask: (num_envs,) bool, the worlds that are reset.
            first: whether no world has a seed yet. Those that are given none then get random ones.

        Returns:
            (num_envs,) bool, the worlds that have got seeds.

        Raises:
            ValueError: a list of seeds does not have one entry for each world, or a seed is negative.
        """
        count = len(self.values)
        if first:
            self.values = np.random.SeedSequence().generate_state(count)
        if seed is None:
            return np.full(count, first)
        if isinstance(seed, str) or (isinstance(seed, (int, np.integer)) and seed < 0):
            raise ValueError(
                f"the seed is {seed!r}; give a number that is not negative, or a list with one for each world"
            )
        seeds = [int(seed) + i for i in range(count)] if isinstance(seed, (int, np.integer)) else list(seed)
        if len(seeds) != count:
            raise ValueError(f"the list of seeds has {len(seeds)} entries for {count} environments; give one for each")
        given = mask & np.array([own is not None for own in seeds])
        self.values[given] = [own % 2**32 for own, there in zip(seeds, given, strict=True) if there and own is not None]
        return given | first


def reset_mask(options: dict[str, Any] | None, num_envs: int) -> np.ndarray:
    """The worlds that a reset starts anew.

    Args:
        options: options of the reset; "reset_mask" names some worlds, and without it all worlds are reset.
        num_envs: number of worlds.

    Returns:
        (num_envs,) bool.

    Raises:
        TypeError: the mask is not a boolean NumPy array.
        ValueError: the mask has the wrong shape or no true entry.
    """
    mask = (options or {}).get("reset_mask")
    if mask is None:
        return np.ones(num_envs, dtype=bool)
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
        kind = f"an array of {mask.dtype}" if isinstance(mask, np.ndarray) else f"a {type(mask).__name__}"
        raise TypeError(f"options['reset_mask'] must be a NumPy array of bool, not {kind}")
    if mask.shape != (num_envs,):
        raise ValueError(
            f"options['reset_mask'] has shape {mask.shape}; give one entry for each of {num_envs} environments"
        )
    if not mask.any():
        raise ValueError("options['reset_mask'] has no true entry; set it for the environments to reset")
    return mask
