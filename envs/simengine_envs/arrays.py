"""Kinds of arrays that vector environments take and give, without copies between libraries on one device."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simengine.errors import did_you_mean


class ArrayKind(NamedTuple):
    """How arrays of a library become arrays of JAX, and back.

    Attributes:
        name: name of the library.
        type: class of its arrays.
        to_jax: makes an array of JAX, without a copy if it lies on JAX's device.
        from_jax: makes an array of the library, without a copy.
    """

    name: str
    type: Any
    to_jax: Callable[[Any], jax.Array]
    from_jax: Callable[[jax.Array], Any]


def _torch() -> ArrayKind:
    torch = import_module("torch")
    return ArrayKind("torch", torch.Tensor, lambda x: jnp.from_dlpack(x.detach().contiguous()), torch.from_dlpack)


def _cupy() -> ArrayKind:
    cupy = import_module("cupy")
    return ArrayKind("cupy", cupy.ndarray, lambda x: jnp.from_dlpack(cupy.ascontiguousarray(x)), cupy.from_dlpack)


def _jax() -> ArrayKind:
    return ArrayKind("jax", jax.Array, lambda x: x, lambda x: x)


def _numpy() -> ArrayKind:
    return ArrayKind("numpy", np.ndarray, jnp.asarray, np.asarray)


_KINDS = {"numpy": _numpy, "jax": _jax, "torch": _torch, "cupy": _cupy}
_INSTALLED_BY = {
    "torch": ("PyTorch", "pip install torch"),
    "cupy": ("CuPy", "pip install 'simengine[cuda13]' (or cuda12)"),
}
"""The name of a library, and the command that installs it."""


def array_kind(name: str) -> ArrayKind:
    """The kind of arrays of a library.

    Raises:
        ValueError: there is no such kind.
        ImportError: the library is not installed.
    """
    if name not in _KINDS:
        raise ValueError(f"array is {name!r}{did_you_mean(name, _KINDS)}; give one of {', '.join(_KINDS)}")
    try:
        return _KINDS[name]()
    except ImportError as error:
        library, command = _INSTALLED_BY[name]
        raise ImportError(
            f"array={name!r} needs {library}, which cannot be imported ({error}); install it with: {command}"
        ) from error
