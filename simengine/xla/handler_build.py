"""Compiles the handlers of custom calls, which XLA calls. JAX is not imported, since that takes a second."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from simengine.errors import BackendError
from simengine.kernels.host_build import build_library
from simengine.xla.lanes import enumeration

_STEPS = ("crew_host", "pace_host", "memory_host", "work_host", "handler_host")
PROGRAMS_RUN_IN = ("functions_host", "lanes_host", "chain_host")
"""Sources that say what the programs of chains mean."""

_SOURCES = {"cpu": (*_STEPS, "calls_host", "rows_host", *PROGRAMS_RUN_IN), "CUDA": ("handler_cuda",)}


def build_handler(platform: str) -> Path:
    """Compile the handler of a platform, "cpu" or "CUDA", or find it in the cache.

    It may run in a thread, ahead of its first use.

    Raises:
        BackendError: JAX is not installed, or the compiler could not compile the handler.
    """
    names = _SOURCES[platform]
    source = "\n".join((Path(__file__).parent / f"{name}.cpp").read_text() for name in names)
    if platform == "cpu":
        source = f"{enumeration()}\n{source}"
    # square roots of vectors set no errno
    options = ["-std=c++17", "-fno-math-errno", "-pthread", "-ldl", f"-I{_headers()}"]
    try:
        return build_library(f"handler_{platform}", source, options)
    except BackendError as error:
        raise BackendError(f"XLA's handler of steps inside JAX programs could not be compiled ({error})") from error


def _headers() -> Path:
    """Folder of XLA's headers: that of `jax.ffi.include_dir`, found without importing JAX."""
    found = find_spec("jaxlib")
    if found is None or found.origin is None:
        raise BackendError("JAX is not installed")
    return Path(found.origin).parent / "include"
