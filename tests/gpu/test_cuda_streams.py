"""The engine on CuPy's streams: other work that is pending when it is called, and work that it leaves pending."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from simengine import Simulation
from tests.emission.worlds import ant, ant_start
from tests.gpu.compare import both, cuda_only, state_bits, to_host
from tests.helpers.checkout import PYTHONPATH, ROOT

WORLDS = 500

SPIN = r"""
extern "C" __global__ void spin(long long cycles) {
    long long began = clock64();
    while (clock64() - began < cycles) { }
}
"""


@cache
def spin() -> Callable[[], None]:
    """Keeps CuPy's current stream busy for some 15 ms."""
    import cupy

    kernel = cupy.RawKernel(SPIN, "spin")
    return lambda: kernel((1,), (1,), (np.int64(30_000_000),))


def started(backend: str = "cuda", seed: int = 0, **options: Any) -> Simulation:
    """Ants in their first states."""
    sim = Simulation(ant(), num_worlds=WORLDS, backend=backend, **options)
    sim.set_state(**ant_start(WORLDS, seed)._asdict())
    return sim


EXECUTORS = [
    {"executor": "serial"},
    {"executor": "streams", "shards": 3},
    {"executor": "streams", "shards": 3, "executor_options": {"completion": "polling"}},
    {"executor": "graph-cached", "shards": 3},
    {"executor": "graph", "shards": 2},
    {"executor": "device", "shards": 2},
    {"executor": "pipeline", "shards": 3},
    {"executor": "streams", "shards": 3, "emission": "ahead", "executor_options": {"stream_policy": "kesco"}},
]
NAMES = ["serial", "events", "polling", "graph-cached", "graph", "device", "pipeline", "kesco"]
executors = pytest.mark.parametrize("options", EXECUTORS, ids=NAMES)


@cuda_only
@executors
def test_a_step_comes_after_pending_writes_and_before_later_reads(backend: str, options: dict[str, Any]) -> None:
    """State written behind a busy stream is what the step sees, and reading needs no wait by hand."""
    import cupy

    sim, other = started(**options), started(**options)
    velocity = np.random.default_rng(1).normal(size=(WORLDS, ant().nv)).astype(np.float32)
    for s in (sim, other):
        s.step()
        s.synchronize()
    target = cupy.asarray(velocity)
    spin()()
    sim.qvel[...] = target
    sim.step(2)
    seen = sim.qvel.copy()
    sim.qvel[...] = 0
    other.set_state(qvel=velocity, qacc_warmstart=other.field("qacc_warmstart"))
    other.synchronize()
    other.step(2)
    other.synchronize()
    assert to_host(seen).tobytes() == to_host(other.qvel).tobytes()


@cuda_only
@executors
@pytest.mark.parametrize("first", ["step", "forward"])
def test_memory_made_behind_a_busy_stream_is_cleared_before_it_is_used(
    backend: str, options: dict[str, Any], first: str
) -> None:
    """The first step makes fields and larger arenas while the stream still works; clearing them must not come late."""
    late, calm = (Simulation(ant(), num_worlds=WORLDS, backend=backend, **options) for _ in range(2))
    start = ant_start(WORLDS)._asdict()
    for sim, busy in ((calm, False), (late, True)):
        sim.set_state(**start)
        sim.synchronize()
        if busy:
            spin()()
        sim.forward() if first == "forward" else sim.step()
        sim.synchronize()
    assert state_bits(late) == state_bits(calm)
    if first == "forward":
        for name in ("xpos", "cdof", "qM", "qfrc_bias", "qacc_smooth", "qacc", "cfrc_ext"):
            assert to_host(late.field(name)).tobytes() == to_host(calm.field(name)).tobytes(), name
        for world in range(0, WORLDS, 7):
            for ours, theirs in zip(late.constraints(world), calm.constraints(world), strict=True):
                np.testing.assert_array_equal(ours, theirs)


@cuda_only
@executors
def test_states_set_behind_a_busy_stream_are_not_mixed_up(backend: str, options: dict[str, Any]) -> None:
    """Each field is staged in memory that the next one may take; none may be overwritten before it was read."""
    late, calm = (Simulation(ant(), num_worlds=WORLDS, backend=backend, **options) for _ in range(2))
    start = ant_start(WORLDS, 3)._asdict()
    for sim, busy in ((calm, False), (late, True)):
        sim.step()
        sim.synchronize()
        if busy:
            spin()()
        sim.set_state(**start)
        sim.step()
        sim.synchronize()
    assert state_bits(late) == state_bits(calm)


@cuda_only
@executors
def test_two_simulations_on_two_streams_are_as_alone(backend: str, options: dict[str, Any]) -> None:
    import cupy

    controls = np.random.default_rng(2).uniform(-1, 1, size=(20, WORLDS, ant().nu)).astype(np.float32)
    alone = []
    for seed in (0, 1):
        sim = started(seed=seed, **options)
        for ctrl in controls:
            sim.step(ctrl=ctrl)
        alone.append(state_bits(sim))
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
    sims, together = [], []
    for seed, stream in enumerate(streams):
        with stream:
            sims.append(started(seed=seed, **options))
    for number, ctrl in enumerate(controls):
        for seed, (stream, sim) in enumerate(zip(streams, sims, strict=True)):
            with stream:
                if number % 7 == 3 * seed:
                    spin()()
                sim.step(ctrl=cupy.asarray(ctrl))
    for stream, sim in zip(streams, sims, strict=True):
        with stream:
            together.append(state_bits(sim))
    assert together == alone
    assert alone[0] != alone[1]


# ------------------------------------------------------------------------------------------------------ other libraries


class Exported:
    """An exporter of DLPack whose capsule is already made for the reader's stream."""

    def __init__(self, array: Any, stream: int):
        self._device = array.__dlpack_device__()
        self._capsule = array.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule


@cuda_only
def test_a_reader_on_another_stream_comes_behind_the_step(backend: str) -> None:
    """The stream argument of DLPack orders it, without a wait for the device."""
    import cupy

    sim, other = started(), started()
    other.step()
    expected = to_host(other.qpos)
    stream = cupy.cuda.Stream(non_blocking=True)
    spin()()
    sim.step()
    exported = Exported(sim.qpos, stream.ptr)
    with stream:
        read = cupy.from_dlpack(exported) * 1
        assert read.get().tobytes() == expected.tobytes()


@both
def test_torch_reads_through_dlpack(backend: str) -> None:
    torch = pytest.importorskip("torch")
    if backend == "cuda" and not torch.cuda.is_available():
        pytest.skip("PyTorch sees no GPU")
    sim = started(backend)
    sim.step()
    read = torch.from_dlpack(sim.qpos)
    assert read.is_cuda == (backend == "cuda")
    np.testing.assert_array_equal(read.cpu().numpy(), to_host(sim.qpos))


READ_WITH_JAX = """
import sys
import jax, numpy as np
from simengine import Simulation
from tests.emission.worlds import ant, ant_start

backend = sys.argv[1]
if backend == "cuda":
    try:
        jax.devices("cuda")
    except RuntimeError as error:
        print("SKIP", str(error).splitlines()[0])
        sys.exit()
sim = Simulation(ant(), num_worlds=500, backend=backend)
sim.set_state(**ant_start(500)._asdict())
sim.step(3)
shared = jax.dlpack.from_dlpack(sim.qpos)
owned = jax.numpy.array(shared, copy=True)
assert shared.devices().pop().platform == {"cuda": "gpu", "host": "cpu"}[backend]
on_host = sim.groups[0].to_host
assert np.asarray(owned).tobytes() == on_host(sim.qpos).tobytes()
# and back: arrays of JAX set the state
sim.set_state(qvel=jax.numpy.ones((500, 14), "float32"), ctrl=-jax.numpy.ones(8, "float32"))
assert (on_host(sim.qvel) == 1).all() and (on_host(sim.ctrl) == -1).all()
before = np.asarray(owned).tobytes()
sim.step(3)
sim.synchronize()
assert np.asarray(owned).tobytes() == before != on_host(sim.qpos).tobytes()
print("DONE")
"""


@both
def test_jax_reads_and_sets_through_dlpack(backend: str) -> None:
    """In a process of its own, since JAX runs on the CPU in this one."""
    platforms = "cuda,cpu" if backend == "cuda" else "cpu"
    paths = PYTHONPATH
    env = os.environ | {"JAX_PLATFORMS": platforms, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "PYTHONPATH": paths}
    command = [sys.executable, "-c", READ_WITH_JAX, backend]
    answer = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=300, cwd=ROOT)
    if "SKIP" in answer.stdout:
        pytest.skip(f"JAX sees no GPU: {answer.stdout.strip()}")
    assert answer.returncode == 0, answer.stderr[-2000:]
    assert "DONE" in answer.stdout
