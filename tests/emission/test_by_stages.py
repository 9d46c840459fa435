"""Steps with a kernel for each stage: the bits of fused kernels under all executors, and the log of each evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simengine import Simulation
from simengine.cli.simulations.workloads import loaded
from simengine.model.model import Model
from simengine.zoo import random_robot
from simengine_scheduler import AwaitCounts, FixedList, KernelCall

MODELS: list[Any] = ["ant", "half_cheetah", "grasp", random_robot(3)]


def stepped(model: Any, emission: str, executor: str, **options: Any) -> tuple[Simulation, bytes]:
    source: Model = loaded(model) if isinstance(model, str) and len(model) < 20 else model
    sim = Simulation(source, 5, backend="host", executor=executor, emission=emission, executor_options=options)
    draw = np.random.default_rng(0)
    for _ in range(30):
        sim.step(ctrl=draw.uniform(-1, 1, (5, sim.model.nu)))
    return sim, sim.qpos.tobytes() + sim.qvel.tobytes()


@pytest.mark.parametrize("model", MODELS, ids=["ant", "half_cheetah", "grasp", "random robot"])
def test_stages_have_the_bits_of_fused_kernels(model: Any) -> None:
    fused, expected = stepped(model, "counted", "serial")
    sim, found = stepped(model, "stages", "serial")
    assert found == expected
    assert stepped(model, "stages", "shuffled", seed=1)[1] == expected
    assert stepped(model, "stages", "threads", workers=2)[1] == expected
    assert sim.schedule.emission == "stages"
    assert len(sim.schedule.kernel_list) > 2 * len(fused.schedule.kernel_list)
    assert sum(entry.name.startswith("only_") for entry in sim.schedule.kernel_list) > 10


@pytest.mark.parametrize("model", ["ant", "grasp"])
def test_stages_go_ahead_of_counts(model: str) -> None:
    counted, expected = stepped(model, "stages", "serial")
    sim, found = stepped(model, "stages-ahead", "shuffled", seed=1)
    assert found == expected
    assert sim.schedule.emission == "stages-ahead"
    (listed,) = sim.schedule.emitters()
    assert isinstance(listed, FixedList)
    names = [call.name for call in listed]
    assert sum("only_" in name for name in names) > 10
    assert len(names) >= len(counted.schedule.kernel_list)


@pytest.mark.parametrize("emission", ["counted", "stages"])
def test_the_list_of_a_step_is_what_was_issued(emission: str) -> None:
    sim, _ = stepped("ant", emission, "serial", record="order")
    engine: Any = sim._batch.engine
    for _ in range(5):
        sim.step()
        assert [call.call for call in sim.schedule.kernel_list] == engine.trace.order
        assert all(call.units > 0 for call in sim.schedule.kernel_list)
    (emitter,) = engine.emitters[0]
    items = list(emitter.steps(1, frozenset()).entries)
    assert sum(isinstance(item, KernelCall) for item in items) > 8
    assert not any(isinstance(item, AwaitCounts) for item in items)
