"""Whole episodes of policies, in simengine and in MuJoCo."""

from __future__ import annotations

import os
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest

from simengine_training.errors import MissingExtraError, TrainingError
from simengine_training.evaluate import FIRST_SEED, Evaluation, counterpart, evaluate
from tests.training import point
from tests.training.balance import BALANCING, STILL

HOPPER = STILL.environment


def to_the_middle(observations: np.ndarray) -> np.ndarray:
    return np.clip(-10 * observations[..., :1], -2, 2).astype(np.float32)


def on_one_thread(observation: np.ndarray) -> np.ndarray:
    assert os.environ["OPENBLAS_NUM_THREADS"] == os.environ["OMP_NUM_THREADS"] == "1"
    return STILL(observation)


def ended(engine: str, episodes: int, **options: Any) -> tuple[Evaluation, list[int]]:
    """An evaluation of the hopper that falls, and what it reported of its progress."""
    reports: list[int] = []
    found = evaluate(STILL, HOPPER, episodes, engine=engine, on_episode=reports.append, **options)
    return found, reports


@pytest.mark.parametrize("engine", ["simengine", "mujoco"])
def test_whole_episodes_of_both_engines(engine: str) -> None:
    found, reports = ended(engine, 5, processes=1)
    assert found.returns.shape == found.lengths.shape == found.truncated.shape == (5,)
    assert (found.lengths > 20).all()
    assert (found.lengths < 300).all()
    assert not found.truncated.any()
    assert len(set(found.returns)) == 5  # each episode has its own start
    assert sum(reports) == 5
    assert found.mean == pytest.approx(np.mean(found.returns))
    assert found.std == pytest.approx(np.std(found.returns))
    made = found.as_dict()
    assert (made["episodes"], made["truncated"]) == (5, 0)
    assert made["return_min"] <= made["return_mean"] <= made["return_max"]
    assert made["length_mean"] == pytest.approx(found.lengths.mean(), abs=0.05)


def test_the_engines_agree_on_a_task() -> None:
    """Falling from rest takes as long in both, but for the noise of the start."""
    ours, theirs = (ended(engine, 40, processes=1)[0] for engine in ("simengine", "mujoco"))
    error = np.hypot(ours.returns.std(), theirs.returns.std()) / np.sqrt(40)
    assert abs(ours.mean - theirs.mean) < 4 * error
    assert error < 0.1 * theirs.mean


def test_mujoco_runs_each_episode_from_its_own_seed() -> None:
    found, _ = ended("mujoco", 3, processes=1)
    env = gymnasium.make("Hopper-v5")
    for index in range(3):
        observation, _ = env.reset(seed=FIRST_SEED + index)
        total, length, over = 0.0, 0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(STILL(observation))
            total, length, over = total + float(reward), length + 1, terminated or truncated
        assert (found.returns[index], found.lengths[index]) == (total, length)
    env.close()
    later, _ = ended("mujoco", 2, seed=FIRST_SEED + 1, processes=1)
    assert later.returns.tolist() == found.returns[1:].tolist()


def test_processes_do_not_share_cores_with_each_others_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert evaluate(on_one_thread, HOPPER, 2, engine="mujoco", processes=2).lengths.all()
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "OPENBLAS_NUM_THREADS" not in os.environ


def test_processes_change_nothing() -> None:
    alone, _ = ended("mujoco", 5, processes=1)
    together, reports = ended("mujoco", 5, processes=2)
    assert together.returns.tolist() == alone.returns.tolist()
    assert together.lengths.tolist() == alone.lengths.tolist()
    assert reports == [1] * 5


def test_arguments_of_the_task_reach_both_engines() -> None:
    task = {"healthy_reward": 0.0, "forward_reward_weight": 0.0, "ctrl_cost_weight": 0.0}
    for engine in ("simengine", "mujoco"):
        arguments = {**task, "dtype": "float64", "width": 64}  # in MuJoCo the last two are left out
        found, _ = ended(engine, 2, env_arguments=arguments, processes=1)
        assert found.returns.tolist() == [0, 0]


def test_episodes_that_the_time_limit_ends_are_counted() -> None:
    arguments = {"max_episode_steps": 30}
    for engine in ("simengine", "mujoco"):
        found = evaluate(BALANCING, BALANCING.environment, 2, engine=engine, processes=1, env_arguments=arguments)
        assert found.lengths.tolist() == [30, 30]
        assert found.truncated.tolist() == [True, True]
        assert found.returns.tolist() == [30, 30]


def test_each_world_counts_once() -> None:
    """Of worlds with long and short episodes, the first to end do not count again."""
    found = evaluate(to_the_middle, point.ID, 12, seed=3)
    env = gymnasium.make(point.ID, disable_env_checker=True)
    for world in range(12):
        observation, _ = env.reset(seed=3 + world)
        total, length, over = 0.0, 0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(to_the_middle(observation))
            total, length, over = total + float(reward), length + 1, terminated or truncated
        assert found.lengths[world] == length
        assert found.returns[world] == pytest.approx(total, rel=1e-5)
    assert len(set(found.lengths)) > 3
    env.close()


def test_an_episode_without_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simengine_training.evaluate.MAX_STEPS", point.STEPS - 1)
    with pytest.raises(TrainingError, match="world 0 has not ended after 19 steps; give the environment a time limit"):
        evaluate(lambda seen: np.zeros_like(seen[..., :1], np.float32), point.ID, 2, env_arguments={"terminate": False})


@pytest.mark.parametrize("env_id", ["simengine/PickUp-v0", "simengine/Go1Flat-v0", point.ID])
def test_a_task_without_a_counterpart_is_named(env_id: str) -> None:
    with pytest.raises(ValueError, match=r"has no environment of its own for .*simengine/Ant-v5, .*/Walker2d-v5$"):
        evaluate(STILL, env_id, 2, engine="mujoco")


def test_what_gymnasium_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("gymnasium.envs.mujoco")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "imageio", None)
    with pytest.raises(MissingExtraError, match=r"'imageio', which is not installed; .* 'gymnasium\[mujoco\]'"):
        counterpart("simengine/Ant-v5")


def test_counterparts_have_the_same_name() -> None:
    assert counterpart("simengine/Ant-v5") == counterpart("Ant-v5") == "Ant-v5"


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"episodes": 0}, ValueError, "episodes must be at least 1, not 0"),
        ({"engine": "brax"}, ValueError, "no engine 'brax'; give one of simengine, mujoco"),
        ({"env_id": "simengine/Nothing-v0"}, TrainingError, "'simengine/Nothing-v0' cannot be made"),
        ({"env_arguments": {"no_such": 1}}, TrainingError, "no argument 'no_such'.*; check its id and arguments"),
        ({"engine": "mujoco", "env_arguments": {"no_such": 1}}, TrainingError, "'Hopper-v5' cannot be made: .*no_such"),
        ({"env_id": "simengine/InvertedPendulum-v5"}, ValueError, "takes observations of 11 entries, not of shape"),
    ],
)
def test_wrong_arguments_are_named(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        evaluate(**{"policy": STILL, "env_id": HOPPER, "episodes": 2, **changes})
