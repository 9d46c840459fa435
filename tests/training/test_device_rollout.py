"""Rollouts on the device: the rollouts of the host, number by number, and trainings that go on with the same bits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simengine_training import Arguments, resume, train
from simengine_training.checkpoint import first_learner, make_network
from simengine_training.device_rollout import DeviceCollector
from simengine_training.environments import make_envs, sizes
from simengine_training.policy import compiled
from simengine_training.rollout import Collector
from simengine_training.statistics import Statistics

ID = "simengine/Ant-v5"
OPTIONS: dict[str, Any] = {"backend": "host", "max_episode_steps": 9, "healthy_z_range": (0.6, 1.0)}
ARGUMENTS = Arguments(env_id=ID, env_arguments=OPTIONS, num_envs=6, rollout_steps=12, hidden_sizes=(16,))


@pytest.fixture(autouse=True)
def _small_numbers() -> Iterator[None]:
    before = jax.config.read("jax_enable_x64")
    jax.config.update("jax_enable_x64", False)
    yield
    jax.config.update("jax_enable_x64", before)


def test_a_rollout_is_that_of_the_host() -> None:
    """Both collect two rollouts in a row, in which episodes terminate and are truncated."""
    on_host, on_device = (make_envs(ID, 6, OPTIONS, on_device=device) for device in (False, True))
    network = make_network(ARGUMENTS, sizes(on_host)[1])
    learner = first_learner(ARGUMENTS, *sizes(on_host))
    statistics = Statistics.empty((105,)).updated(np.random.default_rng(0).normal(0.3, 2.0, (50, 105)))
    collectors = Collector(on_host, compiled(network), 0.9), DeviceCollector(on_device, network, 0.9)  # type: ignore[arg-type]
    for collector in collectors:
        collector.restart(11)
    ended, terminated = list[np.ndarray](), list[np.ndarray]()
    for number in range(2):
        key = jax.random.fold_in(jax.random.key(5), number)
        one, other = (collector.collect(learner.params, statistics, key, 12) for collector in collectors)
        for name, values in one.rollout._asdict().items():
            np.testing.assert_allclose(
                getattr(other.rollout, name), values, rtol=2e-3, atol=2e-3, err_msg=f"{name} {number}"
            )
        assert other.lengths == one.lengths
        np.testing.assert_allclose(other.returns, one.returns, rtol=1e-3, atol=1e-3)
        for name in ("observed", "discounted"):
            for mine, theirs in zip(getattr(other, name), getattr(one, name), strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=2e-3, atol=2e-3, err_msg=name)
        ended.append(np.asarray(other.rollout.ended))
        terminated.append(np.asarray(other.rollout.terminated))
    assert np.any(terminated)
    assert np.any(np.array(ended) & ~np.array(terminated))
    assert isinstance(other.rollout.rewards, jnp.ndarray)


def test_a_resumed_training_has_the_bits_of_an_uninterrupted_one(tmp_path: Path) -> None:
    arguments = Arguments(
        env_id=ID,
        env_arguments={"backend": "host"},
        num_envs=4,
        rollout_steps=8,
        total_steps=4 * 8 * 6,
        minibatches=2,
        epochs=2,
        hidden_sizes=(16,),
        checkpoint_every=2,
        eval_episodes=0,
    )

    def stop(row: dict[str, float]) -> None:
        if row["update"] == 3:
            raise KeyboardInterrupt

    whole = train(arguments, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(arguments, tmp_path / "parts", stop)
    parts = resume(tmp_path / "parts")
    for one, other in zip(jax.tree.leaves(whole.policy.params), jax.tree.leaves(parts.policy.params), strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(parts.rows) == 6
