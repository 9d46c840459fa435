"""Lists of a program in which steps of groups stand among calls of its own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from simengine import BackendError, NonFiniteError, Simulation
from simengine_scheduler import KernelCall, PythonLaunch, make_executor
from simengine_scheduler.core import Item
from tests.emission.batches import batch, bits, source, with_room

NAMES = ("hopper", "crates", "half_cheetah")
STEPS = (5, 2, 3)  # of each group; each has two steps of the simulation


def pushed(sim: Simulation, number: int, step: int) -> None:
    """Set controls that depend on the state."""
    group = sim.groups[number]
    ctrl: Any = group.ctrl
    ctrl[:] = np.sin(np.asarray(group.qpos).sum(axis=1, keepdims=True) + step)


def by_steps(sim: Simulation) -> None:
    """The same steps by `step`, group by group."""
    for number, steps in enumerate(STEPS):
        sim.pause([other != number for other in range(len(STEPS))])
        for step in range(steps):
            pushed(sim, number, step)
            sim.step(2)


def own_list(sim: Simulation, number: int) -> Iterator[Item]:
    schedule = sim.schedule
    reads, writes = schedule.segments_of(number, "qpos"), schedule.segments_of(number, "ctrl")
    steps = schedule.steps(number, 2)
    for step in range(STEPS[number]):
        yield KernelCall("push", PythonLaunch(partial(pushed, sim, number, step)), reads, writes)
        yield from steps


@pytest.mark.parametrize("emission", ["whole", "counted"])
@pytest.mark.parametrize("executor", ["serial", "shuffled", "threads", "auto"])
def test_groups_at_their_own_pace_have_the_bits_of_steps(
    emission: str, executor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = batch(NAMES, executor="serial", emission=emission, shards=2)
    by_steps(expected)
    with_room(monkeypatch, 1)  # arenas grow on the way
    sim = batch(NAMES, executor="serial", emission=emission, shards=2)
    with make_executor(executor, **sim.schedule.options) as own:
        for _ in range(2):
            sim.schedule.run_lists([own_list(sim, number) for number in range(len(STEPS))], own)
    by_steps(expected)
    assert bits(sim) == bits(expected)


def test_afterwards_counts_are_known_and_derived_fields_are_not() -> None:
    sim = batch(NAMES, executor="serial", emission="whole", keep=("qacc",))
    sim.step()
    sim.schedule.run_lists([sim.schedule.steps(1)])
    assert sim.schedule.counts(1)
    with pytest.raises(ValueError, match="does not hold the latest step"):
        sim.groups[1].field("qacc")


def test_worlds_whose_state_is_not_finite_are_found_at_the_end() -> None:
    sim = Simulation([(source(name), 3) for name in NAMES], backend="host", executor="serial", emission="whole")
    np.asarray(sim.groups[0].qvel)[1] = np.nan
    with pytest.raises(NonFiniteError, match="in world 1 "):
        sim.schedule.run_lists([sim.schedule.steps(number, 3) for number in range(len(NAMES))])
    assert sim.groups[2].time.tolist() == [3 * sim.groups[2].model.mj.opt.timestep] * 3


def test_what_is_refused() -> None:
    sim = batch(NAMES, executor="serial", emission="whole")
    with pytest.raises(IndexError, match="no group 3"):
        sim.schedule.steps(3)
    with pytest.raises(ValueError, match="positive"):
        sim.schedule.steps(0, 0)
    with pytest.raises(ValueError, match="'qacc' is not a state field"):
        sim.schedule.segments_of(0, "qacc")
    on_jax = Simulation("<mujoco/>", 1, backend="jax")
    for call in (on_jax.schedule.steps, lambda: on_jax.schedule.run_lists([]), lambda: on_jax.schedule.segments_of(0)):
        with pytest.raises(BackendError):
            call()
