"""A whole training: it learns, and gives the same bits every time, interrupted or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import simengine_training
from simengine_training import curve, evaluate
from simengine_training.checkpoint import read_summary
from simengine_training.errors import TrainingError
from tests.training import point

TIMES = ("rollout_s", "update_s")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, tiny: Any) -> simengine_training.Result:
    """A training from beginning to end, which several tests look at."""
    return simengine_training.train(tiny(), tmp_path_factory.mktemp("training") / "deep" / "out")


def untimed(rows: list[curve.Row]) -> list[str]:
    """Rows without their times, as text, in which NaN equals NaN."""
    return [repr({name: value for name, value in row.items() if name not in TIMES}) for row in rows]


def assert_same(one: simengine_training.Result, other: simengine_training.Result) -> None:
    assert untimed(one.rows) == untimed(other.rows)
    for a, b in zip(jax.tree.leaves(one.policy.params), jax.tree.leaves(other.policy.params), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.policy.statistics.mean, other.policy.statistics.mean)
    assert (one.before, one.after) == (other.before, other.after)


def test_it_learns_to_reach_the_goal(tmp_path: Path, tiny: Any) -> None:
    arguments = tiny(num_envs=32, rollout_steps=32, total_steps=32 * 32 * 30, learning_rate=3e-3, eval_episodes=64)
    result = simengine_training.train(arguments, tmp_path / "out")
    assert result.before is not None
    assert result.after is not None
    # The goal is at most 10 steps of at most 0.2 away; standing still costs 0.5 in each of 20 steps.
    assert result.before["return_mean"] < -6
    assert result.after["return_mean"] > -2.5
    assert result.after["length_mean"] < 7
    early, late = (np.mean([row["return_mean"] for row in rows]) for rows in (result.rows[:3], result.rows[-3:]))
    assert late > early + 2


def test_a_rate_of_nothing_learns_nothing(tmp_path: Path, tiny: Any) -> None:
    """So that the test above measures learning, not what the environment gives away."""
    result = simengine_training.train(tiny(learning_rate=1e-12, normalize_observations=False), tmp_path / "out")
    assert result.before == result.after


def test_same_seed_same_bits_other_seed_others(whole: simengine_training.Result, tmp_path: Path, tiny: Any) -> None:
    again, other = (simengine_training.train(tiny(seed=seed), tmp_path / str(seed)) for seed in (0, 1))
    assert_same(whole, again)
    assert untimed(whole.rows) != untimed(other.rows)


@pytest.mark.parametrize("stop", [1, 3, 4])
def test_resumed_training_is_the_uninterrupted_one(
    stop: int, whole: simengine_training.Result, tmp_path: Path, tiny: Any
) -> None:
    def interrupt(row: curve.Row) -> None:
        if row["update"] == stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simengine_training.train(tiny(), tmp_path / "parts", interrupt)
    seen: list[int] = []
    resumed = simengine_training.resume(tmp_path / "parts", lambda row: seen.append(int(row["update"])))
    assert seen == list(range(stop - stop % 2 + 1, 7))
    assert_same(whole, resumed)
    kept, kept_whole = (curve.read_csv(result.folder / "curve.csv") for result in (resumed, whole))
    assert untimed(kept) == untimed(kept_whole) == untimed(whole.rows)


def test_folder_holds_summary_curve_and_policy(whole: simengine_training.Result, tiny: Any) -> None:
    result, folder = whole, whole.folder
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert summary == result.summary
    assert simengine_training.Arguments(**summary["arguments"]) == tiny()
    assert (summary["updates"], summary["env_steps"]) == (6, 768)
    assert [row["update"] for row in result.rows] == [1, 2, 3, 4, 5, 6]
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    policy = simengine_training.load_policy(folder)
    observations = np.linspace(-1, 1, 9)[:, None]
    np.testing.assert_array_equal(policy.act(observations), result.policy.act(observations))
    np.testing.assert_array_equal(
        policy.act(observations, jax.random.key(1)), result.policy.act(observations, jax.random.key(1))
    )


def test_first_update_starts_from_the_policy_that_acted(tmp_path: Path, tiny: Any) -> None:
    """With one minibatch and one epoch every ratio is 1: the density recomputed is that of the rollout."""
    result = simengine_training.train(tiny(epochs=1, minibatches=1), tmp_path / "out")
    for row in result.rows:
        assert row["clip_fraction"] == 0
        assert abs(row["approx_kl"]) < 1e-6
        assert abs(row["policy_loss"]) < 1e-5


def test_wrong_folders_are_named(tmp_path: Path, tiny: Any) -> None:
    with pytest.raises(TrainingError, match=r"holds no training: there is no summary\.json"):
        simengine_training.resume(tmp_path)
    with pytest.raises(TrainingError, match="holds no training"):
        simengine_training.load_policy(tmp_path)
    simengine_training.train(tiny(eval_episodes=0), tmp_path / "out")
    assert read_summary(tmp_path / "out")["after"] is None
    with pytest.raises(TrainingError, match="already holds a training; resume it"):
        simengine_training.train(tiny(), tmp_path / "out")
    with pytest.raises(TrainingError, match="is finished"):
        simengine_training.resume(tmp_path / "out")


def test_reward_that_is_not_finite_is_named(tmp_path: Path, tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    step = point.PointVectorEnv.step

    def broken(self: point.PointVectorEnv, actions: Any) -> Any:
        observations, rewards, *rest = step(self, actions)
        rewards[len(self.actions) == 20] = np.nan
        return observations, rewards, *rest

    monkeypatch.setattr(point.PointVectorEnv, "step", broken)
    with pytest.raises(TrainingError, match="update 2 made the loss non-finite; lower learning_rate"):
        simengine_training.train(tiny(eval_episodes=0), tmp_path / "out")


def test_episode_without_end_is_named(whole: simengine_training.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "MAX_STEPS", point.STEPS - 1)
    with pytest.raises(TrainingError, match="environment 0 has not ended after 19 steps; give the environment a time"):
        simengine_training.evaluate_policy(whole.policy, point.ID, 2, env_arguments={"terminate": False})


def test_evaluation_takes_one_whole_episode_of_each_environment(whole: simengine_training.Result) -> None:
    policy = whole.policy
    found = simengine_training.evaluate_policy(policy, point.ID, 7, seed=1, env_arguments={"terminate": False})
    assert found.lengths.tolist() == [point.STEPS] * 7
    assert found.mean == found.returns.mean() < 0
    again, drawn = (
        simengine_training.evaluate_policy(policy, point.ID, 7, seed=1, stochastic=drawn) for drawn in (False, True)
    )
    assert (again.lengths <= point.STEPS).all()
    assert again.returns.tolist() != drawn.returns.tolist()
    with pytest.raises(ValueError, match="episodes must be at least 1"):
        simengine_training.evaluate_policy(policy, point.ID, 0)
