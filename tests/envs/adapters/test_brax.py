"""The environments for Brax: against one another, and under its PPO."""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

PENDULUM = "simengine/InvertedPendulum-v5"
ANT = "simengine/Ant-v5"
LENGTH = 8
pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("single_precision"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
]


def adapter() -> Any:
    pytest.importorskip("brax")
    import simengine_envs.adapters.brax

    return simengine_envs.adapters.brax


def replicated(tree: Any, devices: list[jax.Device]) -> Any:
    """What `jax.device_put_replicated` did."""
    sharding = jax.sharding.NamedSharding(jax.sharding.Mesh(np.array(devices), "device"), jax.P("device"))
    return jax.tree.map(lambda x: jax.device_put(jnp.stack([jnp.asarray(x)] * len(devices)), sharding), tree)


@pytest.mark.parametrize("kind", ["batch", "wrap", "brax"])
def test_ppo_trains(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = adapter()
    from brax.training.agents.ppo import networks, train

    if "device_put_replicated" not in vars(jax):  # Brax 0.14 calls it, and JAX 0.10 has dropped it
        monkeypatch.setattr(jax, "device_put_replicated", replicated, raising=False)
    if kind == "batch":
        env, options = made.BraxBatchEnv(ANT, LENGTH, backend="host"), {"wrap_env": False}
    else:
        env = made.BraxEnv(PENDULUM, backend="host")
        options = {"wrap_env_fn": made.wrap} if kind == "wrap" else {}
    reported: list[int] = []
    _, _, metrics = train.train(
        environment=env,
        **options,
        num_timesteps=2000,
        num_envs=16,
        num_eval_envs=4,
        num_evals=2,
        episode_length=LENGTH,
        unroll_length=5,
        batch_size=16,
        num_minibatches=2,
        normalize_observations=True,
        network_factory=functools.partial(
            networks.make_ppo_networks, policy_hidden_layer_sizes=(16,), value_hidden_layer_sizes=(16,)
        ),
        progress_fn=lambda steps, _: reported.append(steps),
    )
    assert reported[-1] >= 2000
    losses = {name: float(value) for name, value in metrics.items() if name.endswith("loss")}
    assert len(losses) >= 4
    assert all(math.isfinite(value) for value in losses.values())
    assert 1 <= metrics["eval/avg_episode_length"] <= LENGTH


def test_batch_does_what_the_wrappers_of_brax_do() -> None:
    """Until episodes end, when Brax's wrapper goes back to the first start, all numbers are the same."""
    made = adapter()
    from brax.envs.wrappers import training

    ours = made.wrap(made.BraxEnv(PENDULUM, backend="host"), LENGTH)
    theirs = training.wrap(made.BraxEnv(PENDULUM, backend="host"), LENGTH)
    keys = jax.random.split(jax.random.PRNGKey(3), 4)  # Brax takes keys of this kind
    mine, reference = ours.reset(keys), theirs.reset(keys)
    np.testing.assert_array_equal(mine.obs, reference.obs)
    first, step, other = mine.obs, jax.jit(ours.step), jax.jit(theirs.step)
    fresh, ended = jnp.ones(4, bool), 0
    for number in range(LENGTH):
        action = jnp.array([[0.0], [0.1], [-0.9], [0.9]])
        mine, reference = step(mine, action), other(reference, action)
        for name in ("reward", "done"):
            np.testing.assert_array_equal(getattr(mine, name)[fresh], getattr(reference, name)[fresh])
        for name in ("steps", "truncation", "episode_done"):
            np.testing.assert_array_equal(mine.info[name][fresh], reference.info[name][fresh], f"{name} of {number}")
        for name, value in reference.info["episode_metrics"].items():
            np.testing.assert_allclose(mine.info["episode_metrics"][name][fresh], value[fresh], err_msg=name)
        restarted, fresh = fresh & (mine.done == 1), fresh & (mine.done == 0)
        np.testing.assert_array_equal(mine.obs[fresh], reference.obs[fresh])
        np.testing.assert_array_equal(reference.obs[restarted], first[restarted])
        assert (mine.obs[restarted] != first[restarted]).any(axis=1).all()
        ended += int(restarted.sum())
    assert ended == 4
    assert 0 < float(mine.info["truncation"].sum()) < 4


def test_actions_reach_the_ranges_of_the_task() -> None:
    env = adapter().BraxEnv(PENDULUM, backend="host")
    state = env.step(env.reset(jax.random.key(0)), jnp.array([-1.0]))
    assert float(state.pipeline_state.action[0]) == -3.0
    assert (env.observation_size, env.action_size, env.backend) == (4, 1, "host")


def test_wrong_calls() -> None:
    made = adapter()
    env = made.BraxEnv(PENDULUM, backend="host")
    with pytest.raises(ValueError, match="action_repeat is 2; repeat actions with the argument frame_skip"):
        made.wrap(env, LENGTH, action_repeat=2)
    with pytest.raises(ValueError, match="draw parameters in the task"):
        made.wrap(env, LENGTH, randomization_fn=lambda system: (system, system))
    with pytest.raises(TypeError, match="no argument 'frame_skp.*did you mean .frame_skip."):
        made.BraxEnv(PENDULUM, frame_skp=2)
