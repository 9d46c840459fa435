"""The kernels of the networks: for CUDA (networks.cu), and with NumPy for the host.

Arrays are float32 and row-major: (rows, features), or (pixels, channels) of a square image. A kernel takes the same
arguments in both forms. Sums have a fixed order in each form. Results of the two forms differ by rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

THREADS = 256
"""Threads of every block."""

TILE = 16
"""Rows and columns of the outputs that a tile of `dense` makes."""

LINEAR, RECTIFIED, BOUNDED = 0, 1, 2
"""What `dense` does to its sums: nothing, no less than 0, or no less than -1 and no more than 1."""

REGISTERS = 64
"""Most registers a thread of a body for workers of executor `device`."""

OPTIONS = ("--std=c++17", "--fmad=false")  # no contraction, which would differ from kernel to kernel


class Kernel(NamedTuple):
    """A kernel: name, parameters in C, shared memory of a block [bytes], and the body in NumPy."""

    name: str
    parameters: str
    memory: int
    body: Callable[..., None]

    @property
    def body_name(self) -> str:
        """The name of the device function that workers call."""
        return f"network_{self.name}"

    def source(self) -> str:
        """Return the CUDA text of the kernel, without the functions of networks.cu that it needs."""
        names = ", ".join(one.split()[-1].lstrip("*") for one in self.parameters.split(","))
        return f"""
extern "C" __global__ void {self.name}({self.parameters}) {{
  extern __shared__ __align__(16) char memory[];
  {self.name}_tile(blockIdx.x, memory, {names});
}}
"""

    def body_source(self) -> str:
        """Return the CUDA text of the device function that runs a tile, with all functions that it needs."""
        types = [one.rsplit(maxsplit=1)[0] for one in self.parameters.split(",")]
        given = ", ".join(f"({kind})s[{i}]" for i, kind in enumerate(types))
        return f"""{shared_source()}
extern "C" __device__ void {self.body_name}(const unsigned long long* s, int tile, char* memory) {{
  {self.name}_tile(tile, memory, {given});
}}
"""


def tiles_of(rows: int, outputs: int) -> int:
    """Return the tiles of kernel `dense`."""
    return -(-rows // TILE) * -(-outputs // TILE)


@cache
def shared_source() -> str:
    """Return networks.cu, which has a function for a tile of each kernel."""
    return Path(__file__).with_name("networks.cu").read_text(encoding="utf-8")


def module_source() -> str:
    """Return the CUDA text of all kernels."""
    return shared_source() + "".join(kernel.source() for kernel in KERNELS)


def _activated(x: np.ndarray, kind: int) -> np.ndarray:
    return np.maximum(x, 0) if kind == RECTIFIED else np.clip(x, -1, 1) if kind == BOUNDED else x


def _observe(x: Any, action: Any, rows: int, inputs: int, outputs: int) -> None:
    push = action.reshape(rows, outputs)[:, np.arange(inputs) % outputs]
    values = x.reshape(rows, inputs)
    values[:] = np.float32(0.9) * (1 - np.float32(1.9) * values * values) + np.float32(0.1) * push


def _route(x: Any, weights: Any, chosen: Any, rows: int, inputs: int, experts: int) -> None:
    chosen[:] = np.argmax(
        np.einsum("rk,ke->re", x, weights), axis=1
    )  # not BLAS, whose order of sums depends on threads


def _bucket(chosen: Any, lists: Any, counts: Any, seen: Any, rows: int) -> None:
    for expert, places in enumerate(lists):
        mine = np.flatnonzero(chosen == expert)
        places[: len(mine)] = mine
        counts[expert] = seen[expert] = len(mine)


def _dense(
    places: Any,
    count: Any,
    x: Any,
    weights: Any,
    bias: Any,
    y: Any,
    inputs: int,
    outputs: int,
    x_stride: int,
    y_stride: int,
    kind: int,
) -> None:
    rows = slice(0, int(count[0])) if places is None else places[: int(count[0])]
    taken = x.reshape(-1, x_stride)[rows, :inputs]
    y.reshape(-1, y_stride)[rows, :outputs] = _activated(np.einsum("rk,ko->ro", taken, weights) + bias, kind)


def _join(
    nodes: Any, before: Any, weights: Any, filters: Any, y: Any, count: int, channels: int, side: int, stride: int
) -> None:
    images = nodes.reshape(-1, side, side, channels)[before]
    joined = np.maximum(np.einsum("n,nvuc->vuc", weights, images), 0)
    bordered = np.pad(joined, ((1, 1), (1, 1), (0, 0)))
    small = -(-side // stride)
    total = np.zeros((small, small, channels), np.float32)
    for tap, kernel in enumerate(filters.reshape(9, channels)):
        dy, dx = divmod(tap, 3)
        total += bordered[dy : dy + side : stride, dx : dx + side : stride] * kernel
    y.reshape(total.shape)[...] = total


def _mean(nodes: Any, chosen: Any, y: Any, count: int, size: int) -> None:
    y.reshape(-1)[:] = np.einsum("ni->i", nodes.reshape(-1, size)[chosen]) / np.float32(count)


OBSERVE = Kernel("observe", "float* x, const float* action, int rows, int inputs, int outputs", 0, _observe)
ROUTE = Kernel(
    "route", "const float* x, const float* weights, int* chosen, int rows, int inputs, int experts", 0, _route
)
BUCKET = Kernel("bucket", "const int* chosen, int* lists, int* counts, int* seen, int rows", 4 * THREADS // 32, _bucket)
DENSE = Kernel(
    "dense",
    "const int* list, const int* count, const float* x, const float* weights, const float* bias, float* y, "
    "int inputs, int outputs, int x_stride, int y_stride, int kind",
    2 * 4 * TILE * TILE,
    _dense,
)
JOIN = Kernel(
    "join",
    "const float* nodes, const int* before, const float* weights, const float* filters, float* y, "
    "int count, int channels, int side, int stride",
    0,
    _join,
)
MEAN = Kernel("mean", "const float* nodes, const int* chosen, float* y, int count, int size", 0, _mean)
KERNELS = (OBSERVE, ROUTE, BUCKET, DENSE, JOIN, MEAN)
