"""Learners for `benchmarks.mixed_training`: one for each robot of a batch, by augmented random search.

Every world of a robot tries its own policy: the robot's, and a random change of it. At the end of an episode the policy
moves by the mean of the changes, each weighted by the distance that its world went (Mania et al. 2018, arXiv
1803.07055, algorithm V1 without mirrored changes). Policies are linear in clipped coordinates and velocities. On a GPU
three kernels do this, on the host NumPy.

`act`, `end_episode` and `reset` do it at once. `launches` are the same for lists of calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import simengine
from simengine.state.fields import INTEGRATION_STATE
from simengine_scheduler import CudaLaunch, PythonLaunch

SIZE, RATE = 0.3, 0.3  # of changes, and of the steps of a policy
_SOURCE = r"""
__device__ inline float limited(float x) { return fminf(fmaxf(x, -3.f), 3.f); }

// Random numbers of mean 0 and variance 1: sums of four uniform ones.
__device__ inline float drawn(unsigned a, unsigned b) {
    float sum = 0.f;
    for (unsigned k = 0; k < 4; ++k) {
        unsigned x = a * 0x9E3779B1u ^ (b * 4u + k) * 0x85EBCA77u;
        x ^= x >> 16; x *= 0x7FEB352Du; x ^= x >> 15; x *= 0x846CA68Bu; x ^= x >> 16;
        sum += (float)(x >> 8) * (1.f / 16777216.f);
    }
    return (sum - 2.f) * 1.7320508f;
}

// Controls of the worlds of some robots: a block for each world. A robot's words are the addresses of its coordinates,
// velocities, controls and policies, and how many of the first three a world has.
extern "C" __global__ void act(const long long* robots, const int* chosen, int worlds) {
    const long long* own = robots + 8 * chosen[blockIdx.x];
    const int world = blockIdx.y, nq = own[4], nv = own[5], nu = own[6], seen = nq + nv;
    const float* qpos = (const float*)own[0] + (long long)world * nq;
    const float* qvel = (const float*)own[1] + (long long)world * nv;
    const float* policy = (const float*)own[3] + (long long)world * nu * seen;
    for (int u = threadIdx.x; u < nu; u += blockDim.x) {
        float sum = 0.f;
        for (int i = 2; i < nq; ++i) sum = fmaf(policy[u * seen + i], limited(qpos[i]), sum);
        for (int i = 0; i < nv; ++i) sum = fmaf(policy[u * seen + nq + i], limited(0.1f * qvel[i]), sum);
        ((float*)own[2])[(long long)world * nu + u] = fminf(fmaxf(sum, -1.f), 1.f);
    }
}

// Ends an episode of a robot: moves its policy, and draws changes for the next episode.
extern "C" __global__ void learn(const float* qpos, int nq, float* policy, float* changed, float* returns, int size,
                                 int worlds, unsigned episode, int moves, float rate, float step) {
    __shared__ float mean, scale;
    if (threadIdx.x == 0) {
        float sum = 0.f, squares = 0.f;
        for (int w = 0; w < worlds; ++w) {
            const float x = qpos[(long long)w * nq];
            returns[w] = isfinite(x) ? fminf(fmaxf(x, -10.f), 10.f) : -10.f;
            sum += returns[w];
        }
        mean = sum / worlds;
        for (int w = 0; w < worlds; ++w) squares += (returns[w] - mean) * (returns[w] - mean);
        scale = moves ? step / (worlds * (sqrtf(squares / worlds) + 1e-6f)) : 0.f;
    }
    __syncthreads();
    for (int p = threadIdx.x; p < size; p += blockDim.x) {
        float sum = 0.f;
        for (int w = 0; w < worlds && moves; ++w)
            sum = fmaf(returns[w] - mean, (changed[(long long)w * size + p] - policy[p]) / rate, sum);
        policy[p] = fmaf(scale, sum, policy[p]);
        for (int w = 0; w < worlds; ++w)
            changed[(long long)w * size + p] = fmaf(rate, drawn(episode * 65537u + w, p), policy[p]);
    }
}

// Copies fields, each by a block. A field's words are where to, where from, and how many bytes.
extern "C" __global__ void restore(const long long* fields) {
    const long long* own = fields + 3 * blockIdx.x;
    for (int i = threadIdx.x; i < own[2]; i += blockDim.x) ((char*)own[0])[i] = ((const char*)own[1])[i];
}
"""


class Launches(NamedTuple):
    """Launches for one robot.

    Attributes:
        act: sets its controls.
        learn: makes what lets it learn from an episode, anew for each one.
        reset: puts its worlds back into their initial state.
    """

    act: Any
    learn: Callable[[], Any]
    reset: Any


def _drawn(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The random numbers of the kernels."""
    total = np.zeros(np.broadcast(a, b).shape, np.float32)
    for k in range(4):
        x = a * np.uint32(0x9E3779B1) ^ (b * np.uint32(4) + np.uint32(k)) * np.uint32(0x85EBCA77)
        for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
            x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
        x = x ^ (x >> np.uint32(16))
        total += (x >> np.uint32(8)).astype(np.float32) / np.float32(2**24)
    return (total - np.float32(2)) * np.float32(1.7320508)


class HostLearners:
    """The learners of the robots of some groups, in NumPy.

    Attributes:
        policies: of each robot, (nu * (nq + nv),).
        distances: mean distance of a robot in each of its episodes [m].
    """

    def __init__(self, groups: Sequence[simengine.Group]) -> None:
        self.groups = list(groups)
        self._sizes = [(group.model.nq, group.model.nv, group.model.nu) for group in groups]
        self.policies = [np.zeros(nu * (nq + nv), np.float32) for nq, nv, nu in self._sizes]
        worlds = [group.num_worlds for group in groups]
        self._changed = [np.zeros((n, len(own)), np.float32) for n, own in zip(worlds, self.policies, strict=True)]
        self._episodes = [0] * len(groups)
        self.distances: list[list[float]] = [[] for _ in groups]
        self._initial = [[array.copy() for array in _fields(group)] for group in groups]
        for number in range(len(groups)):
            self._learn(number, moves=False)

    def act(self, chosen: Sequence[int]) -> None:
        """Set the controls of some robots."""
        for number in chosen:
            group, (nq, nv, nu) = self.groups[number], self._sizes[number]
            seen = np.concatenate([group.qpos, np.float32(0.1) * group.qvel], axis=1).clip(-3, 3)
            seen[:, :2] = 0
            policy = self._changed[number].reshape(-1, nu, nq + nv)
            ctrl: Any = group.ctrl
            ctrl[:] = np.einsum("wuo,wo->wu", policy, seen).clip(-1, 1)

    def end_episode(self, number: int) -> None:
        """Let a robot learn from its episode."""
        self._learn(number, moves=True)

    def reset(self, number: int) -> None:
        """Put a robot's worlds back into their initial state."""
        for array, initial in zip(_fields(self.groups[number]), self._initial[number], strict=True):
            array[:] = initial

    def launches(self, number: int) -> Launches:
        """The same for a robot as launches."""
        learn = partial(self._learn, number, moves=True)
        act, reset = partial(self.act, (number,)), partial(self.reset, number)
        return Launches(PythonLaunch(act), lambda: PythonLaunch(learn), PythonLaunch(reset))

    def bits(self) -> bytes:
        """The policies and the states of all worlds."""
        return b"".join(own.tobytes() for own in self.policies) + _states(self.groups)

    def _learn(self, number: int, moves: bool) -> None:
        policy, changed = self.policies[number], self._changed[number]
        if moves:
            x = self.groups[number].qpos[:, 0]
            returns = np.where(np.isfinite(x), x.clip(-10, 10), np.float32(-10))
            self.distances[number].append(float(returns.mean()))
            scale = np.float32(RATE / (len(returns) * (returns.std() + 1e-6)))
            policy += scale * ((returns - returns.mean()) @ ((changed - policy) / np.float32(SIZE)))
        a = np.uint32(self._episodes[number] * 65537) + np.arange(len(changed), dtype=np.uint32)[:, None]
        changed[:] = policy + np.float32(SIZE) * _drawn(a, np.arange(len(policy), dtype=np.uint32)[None])
        self._episodes[number] += 1


class CudaLearners:
    """The same on a GPU. Nothing waits for it."""

    def __init__(self, groups: Sequence[simengine.Group]) -> None:
        import cupy

        self._cupy = cupy
        self.groups = list(groups)
        self._act, self._learn, self._restore = (cupy.RawKernel(_SOURCE, name) for name in ("act", "learn", "restore"))
        sizes = [(group.model.nq, group.model.nv, group.model.nu) for group in groups]
        self.policies = [cupy.zeros(nu * (nq + nv), cupy.float32) for nq, nv, nu in sizes]
        worlds = self._worlds = groups[0].num_worlds
        self._changed = [cupy.zeros((worlds, len(own)), cupy.float32) for own in self.policies]
        self._episodes = [0] * len(groups)
        self._returns: list[list[Any]] = [[] for _ in groups]  # of each episode
        self._chosen: dict[tuple[int, ...], Any] = {}
        self._arrays = [self._present(number) for number in range(len(groups))]
        addresses = [
            (*(array.data.ptr for array in arrays), changed.data.ptr, *size, 0)
            for arrays, changed, size in zip(self._arrays, self._changed, sizes, strict=True)
        ]
        self._robots = cupy.array(addresses, cupy.int64)
        self._initial = [[array.copy() for array in _fields(group)] for group in groups]
        self._resets = [
            cupy.array(
                [(a.data.ptr, b.data.ptr, a.nbytes) for a, b in zip(_fields(group), own, strict=True)], cupy.int64
            )
            for group, own in zip(groups, self._initial, strict=True)
        ]
        for number in range(len(groups)):
            self._launch_end(number, moves=False)
            self._returns[number].clear()

    def act(self, chosen: Sequence[int]) -> None:
        """Set the controls of some robots, by one kernel."""
        key = tuple(chosen)
        if key not in self._chosen:
            self._chosen[key] = self._cupy.array(chosen, self._cupy.int32)
        arguments = self._robots, self._chosen[key], self._cupy.int32(self._worlds)
        self._act((len(chosen), self._worlds), (32,), arguments)

    def end_episode(self, number: int) -> None:
        """Let a robot learn from its episode, by one kernel."""
        self._launch_end(number, moves=True)

    def reset(self, number: int) -> None:
        """Put a robot's worlds back into their initial state, by one kernel."""
        self._restore((len(self._resets[number]),), (256,), (self._resets[number],))

    def launches(self, number: int) -> Launches:
        """The same for a robot as launches."""
        make, cupy = CudaLaunch.from_kernel, self._cupy
        self._chosen[(number,)] = chosen = cupy.array((number,), cupy.int32)
        act = make(self._act, (1, self._worlds), (32,), (self._robots, chosen, cupy.int32(self._worlds)))
        reset = make(self._restore, (len(self._resets[number]),), (256,), (self._resets[number],))
        return Launches(act, lambda: make(self._learn, (1,), (128,), self._end(number, moves=True)), reset)

    @property
    def distances(self) -> list[list[float]]:
        """Mean distance of a robot in each of its episodes [m]."""
        return [[float(returns.mean()) for returns in own] for own in self._returns]

    def bits(self) -> bytes:
        """The policies and the states of all worlds."""
        return b"".join(own.get().tobytes() for own in self.policies) + _states(self.groups)

    def _launch_end(self, number: int, moves: bool) -> None:
        self._learn((1,), (128,), self._end(number, moves))

    def _end(self, number: int, moves: bool) -> tuple[Any, ...]:
        """Arguments of the kernel that ends an episode, which has an array of returns of its own."""
        cupy, present = self._cupy, self._present(number)
        if any(a.data.ptr != b.data.ptr for a, b in zip(self._arrays[number], present, strict=True)):
            raise RuntimeError(f"the state of robot {number} has moved")
        qpos, policy, returns = present[0], self.policies[number], cupy.empty(self._worlds, cupy.float32)
        self._returns[number].append(returns)
        sizes = cupy.int32(policy.size), cupy.int32(self._worlds), cupy.uint32(self._episodes[number])
        self._episodes[number] += 1
        arguments = qpos, cupy.int32(qpos.shape[1]), policy, self._changed[number], returns, *sizes, cupy.int32(moves)
        return (*arguments, cupy.float32(SIZE), cupy.float32(RATE))

    def _present(self, number: int) -> tuple[Any, ...]:
        group = self.groups[number]
        return group.qpos, group.qvel, group.ctrl


def _states(groups: Sequence[simengine.Group]) -> bytes:
    return b"".join(group.to_host(array).tobytes() for group in groups for array in (group.qpos, group.qvel))


def _fields(group: simengine.Group) -> list[Any]:
    """The arrays of a group's state."""
    return [group._engine.get(group.index, name) for name in INTEGRATION_STATE]
