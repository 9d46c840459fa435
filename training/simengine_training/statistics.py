"""Running mean and variance of batches, which normalise observations and rewards. Everything is float32.

Source: Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simengine_training.devices import mean_over

LIMIT = 10.0  # standard deviations at which values are clipped
TINY = 1e-8


class Statistics(NamedTuple):
    """Mean and variance of all entries so far; 0 and 1 if there are none.

    Attributes:
        number: (), number of entries.
        mean: (size,) or ().
        var: (size,) or (), population variance.
    """

    number: jax.Array
    mean: jax.Array
    var: jax.Array

    @staticmethod
    def empty(shape: tuple[int, ...] = ()) -> Statistics:
        """Statistics of no entries, for entries of this shape, as arrays of NumPy."""
        zero, zeros, ones = np.zeros((), np.float32), np.zeros(shape, np.float32), np.ones(shape, np.float32)
        return Statistics(zero, zeros, ones)  # type: ignore[arg-type]

    def updated(self, batch: jax.Array, axis: str | None = None) -> Statistics:
        """Statistics of all entries so far and those of a batch (..., size) or (...).

        Args:
            batch: the entries.
            axis: name of the axis of devices, each of which has a batch of this shape; None for one device.
        """
        axes = tuple(range(batch.ndim - self.mean.ndim))
        batch = batch.astype(jnp.float32)
        mean = mean_over(batch.mean(axes), axis)
        var = mean_over(((batch - mean) ** 2).mean(axes), axis)
        count = float(np.prod(batch.shape[: len(axes)])) * (1 if axis is None else jax.lax.axis_size(axis))
        total = self.number + jnp.float32(count)
        part, delta = jnp.float32(count) / total, mean - self.mean
        spread = self.var * (1 - part) + var * part + delta**2 * (part * (1 - part))
        return Statistics(total, self.mean + delta * part, spread)

    @property
    def deviation(self) -> jax.Array:
        """Standard deviation, (size,) or (), never zero."""
        return jnp.sqrt(self.var + TINY)

    def normalized(self, values: jax.Array) -> jax.Array:
        """Values (..., size) minus the mean, divided by the standard deviation, clipped to +-LIMIT."""
        return jnp.clip((values.astype(jnp.float32) - self.mean) / self.deviation, -LIMIT, LIMIT)

    def scaled(self, values: jax.Array) -> jax.Array:
        """Values divided by the standard deviation, clipped to +-LIMIT.

        The mean is not subtracted, since that could change the sign of a reward.
        """
        return jnp.clip(values.astype(jnp.float32) / self.deviation, -LIMIT, LIMIT)
