"""Robots that step, learn and are reset at their own pace have the bits of those that wait for each other."""

from __future__ import annotations

import pytest

import simengine
from benchmarks import mixed_training
from benchmarks.mixed_training import Training
from simengine.zoo import random_robot

pytestmark = pytest.mark.gpu


def test_every_way_trains_to_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixed_training, "_EPISODE", (4, 6))
    models = [simengine.load_model(random_robot(seed)) for seed in range(4)]
    bits = set()
    for way in ("kept graphs", "window, whole", "window, own pace", "graphs, own pace"):
        training = Training(way, models, 16, "cuda")
        for _ in range(4):
            training.timed(20)
        assert all(training.learners.distances)  # each robot has ended an episode
        bits.add(training.learners.bits())
        training.close()
    assert len(bits) == 1
