"""The automatic executor on a machine whose speed varies: it takes what is within 5 % of the fastest."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.scheduler.timed_executors import Clock, Slow, of, settled

MACHINES = 20


class Noisy(Slow):
    """Takes about its time. Other programs make some runs much longer, and all runs longer and longer."""

    draw: random.Random
    noise: float
    rare: float
    drift: float  # share of the time that is added in a second

    def run(self, emitters: Any) -> Any:
        before = self.clock.now
        trace = super().run(emitters)
        factor = self.draw.lognormvariate(0.0, self.noise) * (1.0 + self.drift * before)
        factor *= self.draw.uniform(2.0, 10.0) if self.draw.random() < self.rare else 1.0
        self.clock.now = before + factor * (self.clock.now - before)
        return trace


@pytest.mark.parametrize(("noise", "rare", "drift"), [(0.05, 0.01, 0.0), (0.1, 0.02, 0.0), (0.1, 0.02, 0.5)])
def test_what_is_chosen_is_within_five_percent(clock: Clock, noise: float, rare: float, drift: float) -> None:
    ratios = []
    for seed in range(MACHINES):
        draw = random.Random(seed)
        kind = type("Noisy", (Noisy,), {"draw": draw, "noise": noise, "rare": rare, "drift": drift})
        near = draw.uniform(2e-6, 20e-6)
        seconds = {name: near * draw.uniform(1.0, draw.choice((1.2, 1.5, 4.0))) for name in "abcde"}
        executor, _ = of(clock, **{name: (kind, each) for name, each in seconds.items()})
        settled(executor, 30, most=5000)
        ratios.append(seconds[executor.executor.name] / min(seconds.values()))
        clock.now = 0.0
    assert sum(ratio <= 1.05 for ratio in ratios) >= MACHINES - 1, sorted(ratios)
