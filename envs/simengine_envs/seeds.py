"""Random generators and reset masks of a vector environment."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.utils import seeding


class Generators:
    """A random generator for each world, as if each world were a single environment.

    A generator is made when it is seeded or first used, like `gymnasium.Env.np_random`.
    """

    def __init__(self, num_envs: int):
        self._generators: list[np.random.Generator | None] = [None] * num_envs
        self._seeds: list[int] = [-1] * num_envs

    def seed(self, seed: int | list[int | None] | None, mask: np.ndarray) -> None:
        """Seed the generators of some worlds.

        Args:
            seed: seed of world 0, while world i gets `seed + i`; or a list with a seed or None for each world. A world
                with None goes on with its generator.
            mask: (num_envs,) bool, true for the worlds to seed.

        Raises:
            ValueError: a list of seeds does not have one entry for each world.
        """
        if seed is None:
            return
        count = len(self._generators)
        seeds = [int(seed) + i for i in range(count)] if isinstance(seed, (int, np.integer)) else list(seed)
        if len(seeds) != count:
            raise ValueError(f"the list of seeds has {len(seeds)} entries for {count} environments; give one for each")
        for world in np.flatnonzero(mask).tolist():
            if seeds[world] is not None:
                self._make(world, seeds[world])

    def at(self, worlds: np.ndarray) -> list[np.random.Generator]:
        """The generators of the worlds with these indices, (k,)."""
        result = []
        for world in worlds.tolist():
            generator = self._generators[world]
            result.append(self._make(world, None) if generator is None else generator)
        return result

    def seeds(self) -> tuple[int, ...]:
        """The seed of every world's generator."""
        self.at(np.arange(len(self._generators)))
        return tuple(self._seeds)

    def _make(self, world: int, seed: int | None) -> np.random.Generator:
        generator, self._seeds[world] = seeding.np_random(seed)
        self._generators[world] = generator
        return generator


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
