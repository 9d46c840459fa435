"""Steps inside JAX programs where no C++ compiler makes XLA's handlers: the same bits, through handlers in Python."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simengine.state.fields import WORLD_ARENAS
from simengine.xla import python_handlers, structures
from simengine.xla.python_handlers import CudaHandlers

PROGRAM = """
import sys
import jax, jax.numpy as jnp, numpy as np, simengine
from simengine.xla import library
from simengine.errors import BackendError

def compiler():
    raise BackendError("there is none")

if sys.argv[1] == "python":
    library.compiler = compiler
model = simengine.load_model("ant")
step = simengine.make_step(model, backend="host", steps=3, keep=("xpos",))
forward = simengine.make_forward(model, backend="host", keep=("qacc",))
state = simengine.initial_state(model, num_worlds=200)
state = state._replace(qpos=state.qpos.at[:, 2].add(1.0))  # without contacts, so that arenas grow later
noise = np.random.default_rng(0).normal(size=state.qvel.shape)
state = state._replace(qvel=jnp.asarray(noise, jnp.float32))
ctrl = jnp.full((200, model.nu), 0.3)
mass = jnp.full((200, model.nbody), 1.0) * model.mj.body_mass * jnp.linspace(0.9, 1.1, 200)[:, None]
params = jax.vmap(lambda m: simengine.make_params(model, body_mass=m))(mass)
run = jax.jit(lambda s: jax.lax.scan(lambda s, _: step(s, ctrl, params), s, None, length=40))
state, fields = run(state)
found = {"qpos": state.qpos, "nstep": state.nstep, "xpos": fields["xpos"]}
found["qacc"] = jax.jit(forward)(state, ctrl, None, jnp.arange(200) % 3 == 0)["qacc"]
import gymnasium
env = gymnasium.make_vec("simengine/HalfCheetah-v5", num_envs=3, backend="host", array="jax")
env.reset(seed=0)
for _ in range(3):
    found["seen"] = env.step(jnp.full((3, 6), 0.5))[0]
np.savez(sys.argv[2], **found)
small = simengine.make_step(model, backend="host")
compiled = jax.jit(small).lower(state, ctrl).compile()
del small
jax.clear_caches()
import gc, time
gc.collect()
time.sleep(0.2)
try:
    jax.block_until_ready(compiled(state, ctrl))
except Exception as error:
    print(type(library.handlers("cpu")).__name__, "keep what simengine.make_step returned" in str(error))
"""


@pytest.mark.slow
def test_steps_without_a_compiler_have_the_same_bits(tmp_path: Path) -> None:
    found = []
    for way, expected in (("compiled", "CDLL True"), ("python", "HostHandlers True")):
        file = tmp_path / f"{way}.npz"
        command = [sys.executable, "-c", PROGRAM, way, str(file)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert answer.stdout.strip() == expected, answer.stderr
        found.append(np.load(file))
    for name in found[0].files:
        np.testing.assert_array_equal(found[0][name], found[1][name], err_msg=name)
    assert found[0]["nstep"].tolist() == [120] * 200
    assert np.abs(found[0]["qacc"]).sum() > 1


class Driver:
    """CUDA's driver on memory of the host: the kernels of `copies.cu`, and a graph that adds one to the state."""

    GATHER, SCATTER, CHOOSE, GRAPH, EVENT, STREAM = range(1, 7)

    def __init__(self, state: np.ndarray, progress: np.ndarray, full: bool):
        self.state, self.progress, self.full = state, progress, full
        self.log: list[str] = []

    def cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> int:
        assert (stream, event, flags) == (self.STREAM, self.EVENT, 0)
        self.log.append("wait")
        return 0

    def cuEventRecord(self, event: int, stream: int) -> int:
        assert (stream, event) == (self.STREAM, self.EVENT)
        self.log.append("record")
        return 0

    def cuGraphLaunch(self, graph: int, stream: int) -> int:
        assert (graph, stream) == (self.GRAPH, self.STREAM)
        self.log.append("graph")
        self.state += 1
        self.progress[0] = self.full
        return 0

    def cuLaunchKernel(self, kernel: int, *rest: Any) -> int:
        x, y, z, threads, _, _, shared, stream, parameters, extra = rest
        assert (z, shared, stream, extra) == (1, 0, self.STREAM, None)
        if kernel == self.CHOOSE:
            assert (x, y, threads) == (1, 1, 1024)
            self._choose(parameters)
            return 0
        self.log.append({self.GATHER: "gather", self.SCATTER: "scatter"}[kernel])
        assert threads == 256
        items = (structures.Item * structures.MOST_ITEMS).from_address(parameters[0])
        progress = ctypes.c_void_p.from_address(parameters[1]).value
        words = ctypes.c_int32.from_address(parameters[2]).value
        assert progress == self.progress.ctypes.data
        assert words == self.progress.size
        full = kernel == self.SCATTER and self.progress[: len(WORLD_ARENAS)].any()
        for item in items[:y]:
            instead = full and item.instead
            source = item.instead if instead else item.source
            stride = item.instead_stride if instead else item.from_stride
            for row in range(item.rows):
                to = item.to + 4 * row * item.to_stride
                if source:
                    ctypes.memmove(to, source + 4 * row * stride, 4 * item.words)
                else:
                    ctypes.memset(to, 0, 4 * item.words)
        if kernel == self.GATHER:
            self.progress[: len(WORLD_ARENAS)] = 0
        return 0

    def _choose(self, parameters: Any) -> None:
        self.log.append("choose")
        mask, number = (
            ctypes.c_void_p.from_address(parameters[0]).value,
            ctypes.c_int32.from_address(parameters[1]).value,
        )
        lists = [ctypes.c_void_p.from_address(parameters[k]).value for k in (2, 3)]
        flags = np.asarray((ctypes.c_int32 * number).from_address(mask or 0))
        chosen = np.flatnonzero(flags).astype(np.int32)
        ctypes.memmove(lists[0] or 0, chosen.ctypes.data, chosen.nbytes)
        ctypes.c_int32.from_address(lists[1] or 0).value = len(chosen)


class Frame:
    """A custom call on the host's memory."""

    kind = 5

    def __init__(self, arguments: list[np.ndarray], results: list[np.ndarray]):
        self.arguments = [(array.ctypes.data, array.nbytes) for array in arguments]
        self.results = [(array.ctypes.data, array.nbytes) for array in results]

    def stream(self) -> int:
        return Driver.STREAM

    def device(self) -> int:
        return 0


@pytest.mark.parametrize("full", [False, True])
def test_calls_on_a_gpu_copy_launch_and_copy(monkeypatch: pytest.MonkeyPatch, full: bool) -> None:
    """The driver is not CUDA's. What it is asked to do is what `handler_cuda.cpp` asks for."""
    state, counters = np.zeros((3, 4), np.float32), np.ones((1, 7), np.int32)
    derived, progress = np.full((3, 2), 9, np.float32), np.ones(4, np.int32)
    lists, number = np.zeros(3, np.int32), np.zeros(1, np.int32)

    def field(array: np.ndarray, columns: int) -> structures.Field:
        return structures.Field(array.ctypes.data, len(array), 4 * columns, array.strides[0])

    inputs = structures.array_of(structures.Field, [field(state, 3)])  # rows with a gap
    outputs = structures.array_of(structures.Field, [field(state, 3), field(derived, 2)])
    graphs = structures.array_of(structures.Graph, [structures.Graph(Driver.GRAPH, 2)])
    cleared = structures.array_of(structures.Field, [field(counters, 7)])
    fallback = (ctypes.c_int64 * 2)(0, -1)
    memory = structures.CudaMemory(
        *(inputs, 1, outputs, 2, graphs, 1, Driver.GATHER, Driver.SCATTER),
        *(progress.ctypes.data, progress.size, Driver.EVENT, fallback),
        *(cleared, 1, Driver.CHOOSE, lists.ctypes.data, number.ctypes.data, 3),
    )
    driver = Driver(state, progress, full)
    monkeypatch.setattr(python_handlers, "cuda_driver", lambda: driver)
    handlers = CudaHandlers()
    handlers.simengine_add(ctypes.c_int64(5), ctypes.c_int64(0), ctypes.byref(memory))
    given, mask = np.arange(9, dtype=np.float32).reshape(3, 3), np.array([1, 0, 1], np.int32)
    new, fields = np.zeros((3, 3), np.float32), np.zeros((3, 2), np.float32)
    handlers._step(Frame([given, mask], [new, fields]))  # type: ignore[arg-type]
    assert driver.log == ["wait", "gather", "choose", "graph", "graph", "scatter", "record"]
    np.testing.assert_array_equal(new, given if full else given + 2)
    np.testing.assert_array_equal(fields, derived)
    assert not counters.any()
    assert lists[: number[0]].tolist() == [0, 2]
    with pytest.raises(ValueError, match="another size than it was traced with"):
        handlers._step(Frame([given[:2], mask], [new, fields]))  # type: ignore[arg-type]


def test_the_structure_of_an_item_is_that_of_the_kernels() -> None:
    source = (Path(python_handlers.__file__).parent / "copies.cu").read_text()
    assert "Item item[56]" in source
    assert structures.MOST_ITEMS == 56
    assert ctypes.sizeof(structures.Item) == 3 * 8 + 6 * 4
