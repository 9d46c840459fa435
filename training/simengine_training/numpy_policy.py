"""A trained policy in NumPy alone: `policy.npz`, and the class that reads, calls and writes it.

    policy = NumpyPolicy.load("policy.npz")
    action = policy(observation)

This file imports nothing but NumPy and the standard library, so that a copy of it beside a `policy.npz` runs anywhere.
A `policy.npz` holds

| array | shape | meaning |
|---|---|---|
| `format` | () | 1, the version of this table |
| `environment` | () | id of the environment that the policy was trained in |
| `mean`, `deviation` | (observations,) | an observation minus `mean`, over `deviation`, clipped to +-`limit` |
| `limit` | () | standard deviations at which observations are clipped |
| `activation` | () | name of the function after each hidden layer |
| `weights_0`, `weights_1`, ... | (inputs, outputs) | matrices of the layers, from the observation to the action |
| `biases_0`, `biases_1`, ... | (outputs,) | biases of the layers |
| `low`, `high` | (actions,) | limits of the action space: an output of -1 means `low`, 1 means `high` |
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = 1
# What reading an archive may raise. A single bit may make an entry large, encrypted or unknown.
_UNREADABLE = (
    *(OSError, ValueError, KeyError, EOFError, MemoryError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error, struct.error),
)
_ARRAYS = ("format", "environment", "mean", "deviation", "limit", "activation", "weights_0", "biases_0", "low", "high")


def _elu(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def _relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def _silu(x: np.ndarray) -> np.ndarray:
    return x * (0.5 + 0.5 * np.tanh(0.5 * x))


ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "elu": _elu,
    "relu": _relu,
    "silu": _silu,
    "tanh": np.tanh,
}


@dataclass(frozen=True)
class NumpyPolicy:
    """A policy that takes the most likely action of a Gaussian actor. See the table above for its fields."""

    environment: str
    mean: np.ndarray
    deviation: np.ndarray
    limit: float
    activation: str
    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]
    low: np.ndarray
    high: np.ndarray

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """The actions for observations.

        Args:
            observations: (observations,) or (n, observations), as the environment gives them.

        Returns:
            Actions (actions,) or (n, actions), float32, within the limits of the action space.

        Raises:
            ValueError: an observation has another number of entries.
        """
        given = np.asarray(observations)
        if given.shape[-1:] != self.mean.shape:
            raise ValueError(
                f"the policy takes observations of {self.mean.size} entries, not of shape {given.shape}; "
                f"give those of {self.environment}"
            )
        x = np.clip((given - self.mean) / self.deviation, -self.limit, self.limit).astype(np.float32)
        activate = ACTIVATIONS[self.activation]
        for weights, biases in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = activate(x @ weights + biases)
        action = x @ self.weights[-1] + self.biases[-1]
        middle, half = (self.high + self.low) / 2, (self.high - self.low) / 2
        return np.clip(middle + half * action, self.low, self.high).astype(np.float32)

    def save(self, path: str | Path) -> None:
        """Write the policy as `policy.npz`. `path` is the name of the file, with or without `.npz`."""
        layers: dict[str, Any] = {f"weights_{k}": array for k, array in enumerate(self.weights)}
        layers |= {f"biases_{k}": array for k, array in enumerate(self.biases)}
        np.savez(
            path,
            format=FORMAT,
            environment=self.environment,
            mean=self.mean,
            deviation=self.deviation,
            limit=self.limit,
            activation=self.activation,
            low=self.low,
            high=self.high,
            **layers,
        )

    @staticmethod
    def load(path: str | Path) -> NumpyPolicy:
        """Read a policy from a `policy.npz`, or from a folder that holds one.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is not a policy, or of another format.
        """
        path = Path(path)
        path = path / "policy.npz" if path.is_dir() else path
        try:
            with np.load(path, allow_pickle=False) as file:
                found = dict(file)
        except _UNREADABLE as error:
            if isinstance(error, FileNotFoundError):
                raise
            raise ValueError(f"{path} is not a policy; give a policy.npz, or the folder of one") from error
        return _from_arrays(found, path)


def _from_arrays(found: dict[str, np.ndarray], path: Path) -> NumpyPolicy:
    """The policy with these arrays, which were read from `path`."""
    layers = range(sum(name.startswith("weights_") for name in found))
    if "format" not in found:
        raise ValueError(f"{path} is not a policy; give a policy.npz, or the folder of one")
    wanted = (*_ARRAYS, *(f"{kind}_{k}" for k in layers for kind in ("weights", "biases")))
    if lacking := next((name for name in wanted if name not in found), ""):
        raise ValueError(f"{path} is no complete policy, because it lacks {lacking!r}; export it again")
    if found["format"].tolist() != FORMAT:
        raise ValueError(f"{path} has format {found['format']}, not {FORMAT}; export the policy again")
    if flaw := _flaw(found, layers):
        raise ValueError(f"{path} is no complete policy, because {flaw}; export it again")
    return NumpyPolicy(
        environment=str(found["environment"]),
        mean=found["mean"],
        deviation=found["deviation"],
        limit=float(found["limit"]),
        activation=str(found["activation"]),
        weights=tuple(found[f"weights_{k}"] for k in layers),
        biases=tuple(found[f"biases_{k}"] for k in layers),
        low=found["low"],
        high=found["high"],
    )


def _flaw(found: dict[str, np.ndarray], layers: range) -> str:
    """What makes arrays no policy; empty if nothing does."""
    if str(found["activation"]) not in ACTIVATIONS:
        return f"it has the unknown activation {str(found['activation'])!r}"
    sizes = [found["mean"].size, *(found[f"biases_{k}"].size for k in layers)]
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("mean", "deviation"), (sizes[0],)) | {"limit": ()}
    for k in layers:
        shapes |= {f"weights_{k}": (sizes[k], sizes[k + 1]), f"biases_{k}": (sizes[k + 1],)}
    shapes |= dict.fromkeys(("low", "high"), (sizes[-1],))
    for name, shape in shapes.items():
        if found[name].shape != shape:
            return f"its {name} has shape {found[name].shape}, where {shape} fits the others"
        if found[name].dtype.kind not in "fiu" or not np.isfinite(found[name]).all():
            return f"its {name} has entries that are no finite numbers"
    return ""
