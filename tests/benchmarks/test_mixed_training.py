"""The training of `benchmarks.mixed_training`, on the host."""

from __future__ import annotations

import numpy as np
import pytest

import simengine
from benchmarks import mixed_training
from benchmarks.mixed_training import Training
from simengine.zoo import random_robot


@pytest.fixture(scope="module")
def models() -> list[simengine.Model]:
    return [simengine.load_model(random_robot(seed)) for seed in range(2)]


def test_every_way_trains_to_the_same_bits(models: list[simengine.Model], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixed_training, "_EPISODE", (4, 6))
    bits = set()
    for way in ("window", "window, own pace", "one by one", "serial"):
        training = Training(way, models, 3, "host")
        seconds, made = training.timed(30)
        assert seconds > 0
        assert 20 < made < 60  # the second robot steps in every second step, and both pause
        assert all(len(own) > 1 for own in training.learners.distances)
        assert all(policy.any() for policy in training.learners.policies)
        bits.add(training.learners.bits())
        training.close()
    assert len(bits) == 1


def test_a_reset_in_a_list_is_that_of_a_group(models: list[simengine.Model]) -> None:
    training = Training("window", models, 3, "host")
    training.timed(10)
    sims = training.sims[0], training.sims[0].copy()
    training.learners.reset(0)
    sims[1].groups[0].reset()
    one, two = (sim.full_state()[0]["fields"] for sim in sims)
    assert one.keys() == two.keys()
    assert all(np.asarray(one[name]).tobytes() == np.asarray(two[name]).tobytes() for name in one)
    training.close()
