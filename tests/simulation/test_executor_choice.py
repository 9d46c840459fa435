"""The executor that a simulation chooses itself: it is measured, the reason is given, and no result depends on it."""

from __future__ import annotations

import numpy as np
import pytest

from simengine import Simulation
from tests.models import gymnasium_path

STEPS = 400  # enough for the trials of candidates that do not learn; a run of trials makes eight steps
STATE = ("qpos", "qvel", "time")


def test_one_shard_is_run_in_order() -> None:
    sim = Simulation(gymnasium_path("hopper"), 1, backend="host")
    assert sim.schedule.executor == "serial"
    assert sim.schedule.reason == "all worlds are in one shard, of which nothing can run at once"
    sim.close()


def test_one_that_was_asked_for_is_taken() -> None:
    sim = Simulation(gymnasium_path("hopper"), 4, backend="host", executor="threads", shards=2)
    assert (sim.schedule.executor, sim.schedule.reason) == ("threads", "it was asked for")
    sim.close()


def decided(sim: Simulation) -> None:
    """Step until the trials have ended: a candidate that gets faster from turn to turn has more turns."""
    for _ in range(10):
        if "take turns" not in sim.schedule.reason:
            return
        sim.step(STEPS)


@pytest.mark.parametrize("emission", ["auto", "counted", "ahead"])
def test_candidates_take_turns_and_one_stays(emission: str) -> None:
    """All steps at once and step by step, with controls that change, are those of the serial executor."""
    path, rng = gymnasium_path("hopper"), np.random.default_rng(0)
    controls = rng.uniform(-1, 1, size=(STEPS, 6, 3)).astype(np.float32)
    asked = [Simulation(path, 6, backend="host", shards=3, emission=emission) for _ in range(2)]
    serial = Simulation(path, 6, backend="host", shards=3, emission=emission, executor="serial")
    assert {sim.schedule.reason for sim in asked} == {"threads and serial take turns on the first runs"}
    asked[0].step(STEPS, controls)
    for k in range(STEPS):
        for sim in (asked[1], serial):
            sim.ctrl[:] = controls[k]
            sim.step()
    for name in STATE:
        for sim in asked:
            np.testing.assert_array_equal(getattr(sim, name), getattr(serial, name), err_msg=name)
    for sim in asked:
        decided(sim)
        assert sim.schedule.executor in ("threads", "serial")
        assert "us a call, by the better half of" in sim.schedule.reason
        assert sim.schedule.reason.startswith(sim.schedule.executor)
    for sim in (*asked, serial):
        sim.close()


def test_a_group_that_is_added_begins_new_trials() -> None:
    sim = Simulation(gymnasium_path("hopper"), 2, backend="host")
    sim.add_group(gymnasium_path("swimmer"), 2)
    assert sim.schedule.reason == "threads and serial take turns on the first runs"
    sim.step(STEPS)
    decided(sim)
    assert sim.schedule.reason.startswith(sim.schedule.executor)
    sim.close()
