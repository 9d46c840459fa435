"""The stream on which memory is allocated and filled, one for each GPU of the process.

CuPy's pool keeps the memory that was allocated on a stream for that stream. With a stream for each simulation or
executor, memory would be lost to all others once its owner has ended.
"""

from __future__ import annotations

from functools import cache
from typing import Any


def set_up_stream() -> Any:
    """Return the stream of the current GPU. Whoever uses it waits for it before other streams use the memory."""
    import cupy  # type: ignore[import-untyped]

    return _stream_of(cupy.cuda.Device().id)


@cache
def _stream_of(device: int) -> Any:
    import cupy

    with cupy.cuda.Device(device):
        return cupy.cuda.Stream(non_blocking=True)
