"""The kernels of the networks: for CUDA, and with NumPy for the host. A kernel has the same arguments in both.

Arrays are float32 and row-major: (rows, features), or (pixels, channels) of a square image. `rows`, `inputs` and the
like are int32. Sums have a fixed order in each form; between the two forms they differ by rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

TILE = 16
"""Rows and columns of the outputs that a block of `dense` makes."""

SOURCE = r"""
#define TILE 16

__device__ float activated(float x, int kind) {  // 1: rectified, 2: kept within -1 and 1
    if (kind == 1) return x > 0.0f ? x : 0.0f;
    return kind == 2 ? fminf(1.0f, fmaxf(-1.0f, x)) : x;
}

// A chaotic map of each input, pushed a little by what was last put out: x <- 0.9 (1 - 1.9 x^2) + 0.1 action.
extern "C" __global__ void observe(float* x, const float* action, int rows, int inputs, int outputs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * inputs) return;
    float push = action[(i / inputs) * outputs + (i % inputs) % outputs];
    x[i] = 0.9f * (1.0f - 1.9f * x[i] * x[i]) + 0.1f * push;
}

// The expert of each row: the first of the largest scores.
extern "C" __global__ void route(const float* x, const float* weights, int* chosen, int rows, int inputs, int experts) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    int best = 0;
    float most = 0.0f;
    for (int e = 0; e < experts; ++e) {
        float score = 0.0f;
        for (int k = 0; k < inputs; ++k) score += x[row * inputs + k] * weights[k * experts + e];
        if (e == 0 || score > most) { most = score; best = e; }
    }
    chosen[row] = best;
}

// The rows of each expert in their order, a block of 256 threads an expert; how many there are goes to the host too.
extern "C" __global__ void bucket(const int* chosen, int* lists, int* counts, int* seen, int rows) {
    __shared__ int of_warp[8];
    int expert = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32, start = 0;
    for (int first = 0; first < rows; first += blockDim.x) {
        int row = first + threadIdx.x;
        bool mine = row < rows && chosen[row] == expert;
        unsigned votes = __ballot_sync(0xffffffffu, mine);
        if (lane == 0) of_warp[warp] = __popc(votes);
        __syncthreads();
        int place = start + __popc(votes & ((1u << lane) - 1u));
        for (int w = 0; w < 8; ++w) {
            if (w < warp) place += of_warp[w];
            start += of_warp[w];
        }
        if (mine) lists[expert * rows + place] = row;
        __syncthreads();
    }
    if (threadIdx.x == 0) { counts[expert] = start; seen[expert] = start; }
}

// y[row] = activation(x[row] W + bias) for the first `*count` rows, or those that a list names; tiles of 16 x 16.
extern "C" __global__ void dense(const int* list, const int* count, const float* x, const float* weights,
                                 const float* bias, float* y, int inputs, int outputs, int x_stride, int y_stride,
                                 int kind) {
    __shared__ float a[TILE][TILE], b[TILE][TILE];
    int rows = *count, tx = threadIdx.x, ty = threadIdx.y;
    int i = blockIdx.y * TILE + ty, o = blockIdx.x * TILE + tx;
    if (blockIdx.y * TILE >= rows) return;
    int row = i < rows ? (list ? list[i] : i) : -1;
    float sum = o < outputs ? bias[o] : 0.0f;
    for (int first = 0; first < inputs; first += TILE) {
        int k = first + tx, l = first + ty;
        a[ty][tx] = row >= 0 && k < inputs ? x[row * x_stride + k] : 0.0f;
        b[ty][tx] = l < inputs && o < outputs ? weights[l * outputs + o] : 0.0f;
        __syncthreads();
        for (int j = 0; j < TILE; ++j) sum += a[ty][j] * b[j][tx];
        __syncthreads();
    }
    if (row >= 0 && o < outputs) y[row * y_stride + o] = activated(sum, kind);
}

// The node of a randomly wired network before its dense part: the weighted sum of nodes, rectified, then a 3 x 3 filter
// of each channel over a border of zeros. Images of `nodes` have `side` pixels a side, those put out one in `stride`.
extern "C" __global__ void join(const float* nodes, const int* before, const float* weights, const float* filters,
                                float* y, int count, int channels, int side, int stride) {
    int small = (side + stride - 1) / stride, i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= small * small * channels) return;
    int c = i % channels, pixel = i / channels, row = pixel / small * stride, column = pixel % small * stride;
    float sum = 0.0f;
    for (int dy = -1; dy <= 1; ++dy) {
        for (int dx = -1; dx <= 1; ++dx) {
            int v = row + dy, u = column + dx;
            if (v < 0 || v >= side || u < 0 || u >= side) continue;
            float joined = 0.0f;
            for (int n = 0; n < count; ++n)
                joined += weights[n] * nodes[((before[n] * side + v) * side + u) * channels + c];
            sum += activated(joined, 1) * filters[(3 * (dy + 1) + dx + 1) * channels + c];
        }
    }
    y[i] = sum;
}

// The mean of some nodes of `size` numbers each.
extern "C" __global__ void mean(const float* nodes, const int* chosen, float* y, int count, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    float sum = 0.0f;
    for (int n = 0; n < count; ++n) sum += nodes[chosen[n] * size + i];
    y[i] = sum / count;
}
"""


class Kernel(NamedTuple):
    """A kernel: the name of its function in SOURCE, and its body on NumPy arrays."""

    name: str
    body: Callable[..., None]


def _activated(x: np.ndarray, kind: int) -> np.ndarray:
    return np.maximum(x, 0) if kind == 1 else np.clip(x, -1, 1) if kind == 2 else x


def _observe(x: Any, action: Any, rows: int, inputs: int, outputs: int) -> None:
    push = action.reshape(rows, outputs)[:, np.arange(inputs) % outputs]
    values = x.reshape(rows, inputs)
    values[:] = np.float32(0.9) * (1 - np.float32(1.9) * values * values) + np.float32(0.1) * push


def _route(x: Any, weights: Any, chosen: Any, rows: int, inputs: int, experts: int) -> None:
    chosen[:] = np.argmax(np.einsum("rk,ke->re", x, weights), axis=1)  # BLAS may sum in another order among threads


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
    for place, kernel in enumerate(filters.reshape(9, channels)):
        dy, dx = divmod(place, 3)
        total += bordered[dy : dy + side : stride, dx : dx + side : stride] * kernel
    y.reshape(total.shape)[...] = total


def _mean(nodes: Any, chosen: Any, y: Any, count: int, size: int) -> None:
    y.reshape(-1)[:] = np.einsum("ni->i", nodes.reshape(-1, size)[chosen]) / np.float32(count)


OBSERVE = Kernel("observe", _observe)
ROUTE = Kernel("route", _route)
BUCKET = Kernel("bucket", _bucket)
DENSE = Kernel("dense", _dense)
JOIN = Kernel("join", _join)
MEAN = Kernel("mean", _mean)
KERNELS = (OBSERVE, ROUTE, BUCKET, DENSE, JOIN, MEAN)
