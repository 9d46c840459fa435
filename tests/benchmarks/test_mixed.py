"""The benchmark of mixed batches: executors with options, and steps in which groups pause."""

from __future__ import annotations

from argparse import Namespace

import pytest

from benchmarks.mixed import mixed_row, one_by_one, started
from simengine import load_model
from simengine.zoo import random_robot

ARGS = Namespace(
    backend="host", dtype="float64", emission="auto", shards=None, warmup=10, steps=10, traces=0, plot=None, pause=0.5
)


@pytest.mark.parametrize(
    ("executor", "emission"),
    [
        pytest.param("serial:emission=ahead:window=16", "ahead", marks=pytest.mark.slow),
        pytest.param("serial", "whole", marks=pytest.mark.slow),
    ],
)
def test_a_row_has_steps_with_pauses(executor: str, emission: str) -> None:
    row = mixed_row([load_model(random_robot(seed)) for seed in range(3)], 2, executor, ARGS)
    assert (row["emission"], row["options"]) == (emission, executor.partition(":")[2])
    assert row["pauses_over_all"] == pytest.approx(row["us_per_step_with_pauses"] / row["us_per_single_step"], 0.01)
    assert row["qacc_error"] < 1e-6


def test_the_share_of_groups_pauses() -> None:
    sim, _ = started([load_model(random_robot(seed)) for seed in range(3)], 1, "serial", ARGS)
    before = [group.time[0] / group.model.mj.opt.timestep for group in sim.groups]
    one_by_one(sim, 0.5, 40, 1)
    made = [group.time[0] / group.model.mj.opt.timestep - b for group, b in zip(sim.groups, before, strict=True)]
    assert all(8 < steps < 32 for steps in made)
    assert not any(group.paused for group in sim.groups)
