"""Running mean and variance of batches, in float64 on the host.

Source: Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

LIMIT = 10.0  # standard deviations at which values are clipped
TINY = 1e-8


class Moments(NamedTuple):
    """Number of entries of a batch, and their mean and population variance, (size,) or (), in float64."""

    number: int
    mean: np.ndarray
    var: np.ndarray

    @staticmethod
    def of(batch: np.ndarray, axes: int) -> Moments:
        """The moments of a batch over its first `axes` axes."""
        flat = np.asarray(batch, dtype=np.float64)
        flat = flat.reshape(-1, *flat.shape[axes:])
        return Moments(len(flat), flat.mean(axis=0), flat.var(axis=0))


class Statistics(NamedTuple):
    """Mean and variance of all entries so far; 0 and 1 if there are none.

    Attributes:
        number: (), number of entries.
        mean: (size,) or ().
        var: (size,) or (), population variance.
    """

    number: np.ndarray
    mean: np.ndarray
    var: np.ndarray

    @staticmethod
    def empty(shape: tuple[int, ...] = ()) -> Statistics:
        """Statistics of no entries, for entries of this shape."""
        return Statistics(np.zeros(()), np.zeros(shape), np.ones(shape))

    def updated(self, batch: np.ndarray) -> Statistics:
        """Statistics of all entries so far and those of `batch`, (..., size) or (...)."""
        return self.merged(Moments.of(batch, np.ndim(batch) - self.mean.ndim))

    def merged(self, moments: Moments) -> Statistics:
        """Statistics of all entries so far and those of a batch with these moments."""
        count, mean, var = moments
        total = self.number + count
        delta = mean - self.mean
        squares = self.var * self.number + var * count + delta**2 * (self.number * count / total)
        return Statistics(np.asarray(total), self.mean + delta * (count / total), squares / total)

    def normalized(self, values: np.ndarray) -> np.ndarray:
        """Values (..., size) minus the mean, divided by the standard deviation, clipped to +-LIMIT, in float32."""
        return np.clip((values - self.mean) / np.sqrt(self.var + TINY), -LIMIT, LIMIT).astype(np.float32)

    def scaled(self, values: Any) -> Any:
        """Values divided by the standard deviation, clipped to +-LIMIT, in float32. Arrays of JAX remain such.

        The mean is not subtracted, since that could change the sign of a reward.
        """
        if isinstance(values, jax.Array):
            return jnp.clip(values.astype(jnp.float32) / np.float32(np.sqrt(self.var + TINY)), -LIMIT, LIMIT)
        return np.clip(values / np.sqrt(self.var + TINY), -LIMIT, LIMIT).astype(np.float32)
