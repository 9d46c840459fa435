"""Programs of JAX that step: the memory of their steps, programs that run at once, and threads."""

from __future__ import annotations

import gc
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simengine
from tests.xla.steps import WORLDS, controls, model_of

pytestmark = pytest.mark.usefixtures("small_numbers")


@pytest.mark.parametrize("worlds", [4096, 32768])
def test_there_is_room_for_the_rows_that_every_state_has_and_for_feet(worlds: int) -> None:
    model = model_of("biped")
    assert model.table.nfriction > 16
    assert simengine.contact_capacity(model, worlds)[1] >= model.table.nfriction + 32


def test_arenas_grow_inside_a_program() -> None:
    """Two hundred worlds begin without contacts, and then touch more often than the first arena has entries."""
    model = model_of("ant")
    worlds = 200
    state = simengine.initial_state(model, num_worlds=worlds)
    state = state._replace(qpos=state.qpos.at[:, 2].add(1.0))
    step = jax.jit(simengine.make_step(model, backend="host", steps=5, keep=("ncon",)))
    idle = jnp.zeros((worlds, model.nu))
    contacts = []
    for _ in range(20):
        state, fields = step(state, idle)
        contacts.append(int(fields["ncon"].sum()))
    sim = simengine.Simulation(model, worlds, backend="host")
    start = simengine.initial_state(model, num_worlds=worlds)
    sim.set_state(qpos=np.asarray(start.qpos.at[:, 2].add(1.0)))
    sim.step(100)
    assert contacts[0] == 0
    assert max(contacts) > 400
    np.testing.assert_array_equal(state.qpos, sim.qpos)


def test_programs_that_run_at_once_do_not_share_memory() -> None:
    model = model_of("half_cheetah")
    step = jax.jit(simengine.make_step(model, backend="host", steps=200))
    ctrl = controls(model, 1, WORLDS)[0]
    starts = [
        simengine.initial_state(model, num_worlds=WORLDS)._replace(qvel=jnp.full((WORLDS, model.nv), 0.1 * i))
        for i in range(8)
    ]
    alone = [np.asarray(step(start, ctrl).qpos) for start in starts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda start: np.asarray(step(start, ctrl).qpos), starts * 3))
    for i, qpos in enumerate(together):
        np.testing.assert_array_equal(qpos, alone[i % 8])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processors of threads are known on Linux only")
def test_long_calls_leave_the_processors_of_other_threads_alone() -> None:
    """The engine keeps its own threads off the processor of the one that calls them, and binds no others."""
    model, worlds = model_of("ant"), 128
    step = simengine.make_step(model, backend="host", steps=5)
    state, ctrl = simengine.initial_state(model, num_worlds=worlds), jnp.zeros((worlds, model.nu))
    steps = jax.jit(lambda s: jax.lax.scan(lambda s, _: (step(s, ctrl), None), s, None, length=12)[0])

    def others() -> dict[str, set[int]]:
        names = {path.parent.name: path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")}
        return {thread: os.sched_getaffinity(int(thread)) for thread, name in names.items() if name != "simengine"}

    before = others()
    jax.block_until_ready(steps(state))
    everywhere = os.sched_getaffinity(0)
    assert all(allowed == before.get(thread, everywhere) for thread, allowed in others().items())


def test_a_program_without_its_step_function_says_so() -> None:
    model = model_of("half_cheetah")
    state, ctrl = simengine.initial_state(model, num_worlds=3), jnp.zeros((3, model.nu))
    step = simengine.make_step(model, backend="host", steps=17)
    compiled = jax.jit(step).lower(state, ctrl).compile()
    assert compiled(state, ctrl).nstep.tolist() == [17] * 3
    del step
    jax.clear_caches()
    gc.collect()
    with pytest.raises(Exception, match="keep what simengine.make_step returned"):
        jax.block_until_ready(compiled(state, ctrl))


def test_memory_remains_while_a_program_runs() -> None:
    """The step function goes while its program runs; the memory must not, and nobody waits for ever."""
    model = model_of("ant")
    state, ctrl = simengine.initial_state(model, num_worlds=64), jnp.full((64, model.nu), 0.3)
    step = simengine.make_step(model, backend="host", steps=400)
    compiled = jax.jit(step).lower(state, ctrl).compile()
    expected = np.asarray(compiled(state, ctrl).qpos)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lambda: np.asarray(compiled(state, ctrl).qpos))
        while not running.running():
            pass
        del step
        jax.clear_caches()
        gc.collect()
        error = running.exception(60)
    if error is None:
        np.testing.assert_array_equal(running.result(), expected)
    else:  # it began after the function was gone
        assert "keep what simengine.make_step returned" in str(error)


def test_room_for_contacts_changes_no_bits() -> None:
    """Memory that is made for more contacts in advance gives the same results."""
    model = model_of("ant")
    state, ctrl = simengine.initial_state(model, num_worlds=70), jnp.full((70, model.nu), 0.3)
    small = simengine.make_step(model, backend="host", steps=30)(state, ctrl)
    large = simengine.make_step(model, backend="host", steps=30, nconmax=40, njmax=160)(state, ctrl)
    np.testing.assert_array_equal(small.qpos, large.qpos)
    contacts, rows = simengine.contact_capacity(model, 4096)
    assert 0 < contacts <= model.table.ncon_max
    assert rows >= contacts


def test_room_of_the_arenas_is_what_was_asked_for() -> None:
    from simengine.xla.calls import Call
    from simengine.xla.host_memory import HostMemory

    memory = HostMemory(Call(model_of("ant").table, "float32", 300, 1, (), (), (11, 23)), -1)
    store = memory.engine.stores[0]
    for arenas, each in ((store.contacts, 11), (store.rows, 23), (store.jacobians, 23)):
        for arena, begin, end in zip(arenas, store.bounds[:-1], store.bounds[1:], strict=True):
            assert arena.capacity >= each * (end - begin)
