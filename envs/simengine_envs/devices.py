"""Which backend runs, and the JAX device of its arrays."""

from __future__ import annotations

import jax

from simengine import available_backends
from simengine.errors import BackendError


def resolved_backend(name: str) -> str:
    """The backend that runs: "auto" takes cuda if JAX, too, can use the GPU.

    Raises:
        BackendError: the backend is "cuda", and JAX has no GPU.
    """
    if name == "auto":
        there = available_backends()
        usable = (backend for backend, why in there.items() if not why and (backend != "cuda" or _has_gpu()))
        return next(usable, "jax")
    if name == "cuda" and not _has_gpu():
        raise BackendError(
            "environments on backend 'cuda' need JAX with CUDA, and JAX finds no GPU; install simengine[cuda13] or "
            "simengine[cuda12], or use backend='host'"
        )
    return name


def _has_gpu() -> bool:
    try:
        return bool(jax.devices("gpu"))
    except RuntimeError:
        return False


def device_of(backend: str) -> jax.Device:
    """The JAX device of this process on which environments of a backend keep their arrays."""
    if backend == "jax":
        return jax.local_devices()[0]
    return jax.local_devices(backend="gpu" if backend == "cuda" else "cpu")[0]
