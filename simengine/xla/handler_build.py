"""Compiles the handlers of custom calls, which XLA calls. JAX is not imported, since that takes a second."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from simengine.errors import BackendError
from simengine.kernels.host_build import build_library

_SOURCES = {"cpu": ("crew_host", "pace_host", "handler_host", "calls_host", "rows_host"), "CUDA": ("handler_cuda",)}


def build_handler(platform: str) -> Path:
    """Compile the handler of a platform, "cpu" or "CUDA", or find it in the cache.

    It may run in a thread, ahead of its first use.

    Raises:
        BackendError: JAX is not installed, or the compiler could not compile the handler.
    """
    names = _SOURCES[platform]
    source = "\n".join((Path(__file__).parent / f"{name}.cpp").read_text() for name in names)
    try:
        return build_library(f"handler_{platform}", source, ["-std=c++17", "-pthread", "-ldl", f"-I{_headers()}"])
    except BackendError as error:
        raise BackendError(f"XLA's handler of steps inside JAX programs could not be compiled ({error})") from error


def _headers() -> Path:
    """Folder of XLA's headers: that of `jax.ffi.include_dir`, found without importing JAX."""
    found = find_spec("jaxlib")
    if found is None or found.origin is None:
        raise BackendError("JAX is not installed")
    return Path(found.origin).parent / "include"
