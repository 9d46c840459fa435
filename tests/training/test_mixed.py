"""One policy for several robots."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simengine_training import Arguments, resume, train


@pytest.mark.slow
def test_a_policy_for_two_robots_trains_and_resumes(tmp_path: Path) -> None:
    arguments = Arguments(
        env_id="simengine/MixedLocomotion-v0",
        env_arguments={"backend": "host", "robots": ("half_cheetah", "quadruped"), "max_episode_steps": 12},
        num_envs=8,
        rollout_steps=8,
        total_steps=8 * 8 * 4,
        minibatches=2,
        hidden_sizes=(8,),
        spread_starts=True,
        checkpoint_every=2,
        eval_episodes=4,
    )
    whole = train(arguments, tmp_path / "whole")
    assert sum(row["episodes"] for row in whole.rows) > 8
    assert all(row["length_sum"] <= 12 * row["episodes"] for row in whole.rows)
    assert whole.evaluations[-1]["length_mean"] <= 12
    result = train(arguments, tmp_path / "parts", max_seconds=0.0)
    while not result.finished:
        result = resume(tmp_path / "parts", max_seconds=0.0)
    for one, other in zip(whole.policy.weights, result.policy.weights, strict=True):
        np.testing.assert_array_equal(one, other)
