"""The vector environment against Gymnasium's SyncVectorEnv over single environments: equal bit for bit."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

NUM_ENVS = 3
# A narrow band of healthy heights ends episodes within a few steps, and the time limit ends the others.
SHORT = {"healthy_z_range": (0.6, 0.82), "backend": "host", "dtype": "float64"}
LIMIT = 9


def make_pair(mode: AutoresetMode, **arguments: Any) -> tuple[gymnasium.vector.VectorEnv, SyncVectorEnv]:
    """Ours and Gymnasium's vector environment, of the same task."""
    options = {**SHORT, **arguments}
    ours = gymnasium.make_vec(
        "simengine/Ant-v5", num_envs=NUM_ENVS, autoreset_mode=mode, max_episode_steps=LIMIT, **options
    )
    theirs = gymnasium.make_vec(
        "simengine/Ant-v5",
        num_envs=NUM_ENVS,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        max_episode_steps=LIMIT,
        **options,
    )
    assert isinstance(theirs, SyncVectorEnv)
    return ours, theirs


def run(
    mode: AutoresetMode, same: Any, steps: int, params: dict[str, np.ndarray] | None = None, **arguments: Any
) -> tuple[int, int, int]:
    """Step both with random actions and compare everything; returns terminations, truncations, mixed steps.

    Args: params: parameters of the environments' own, (NUM_ENVS, ...).
    """
    ours, theirs = make_pair(mode, **arguments)
    if params:
        ours.unwrapped.set_params(**params)  # type: ignore[attr-defined]
        for i, env in enumerate(theirs.envs):
            env.unwrapped.set_params(**{name: values[i] for name, values in params.items()})
    theirs.action_space.seed(2)
    same(ours.reset(seed=7), theirs.reset(seed=7))
    terminated = truncated = mixed = 0
    for step in range(steps):
        actions = theirs.action_space.sample()
        actual, expected = ours.step(actions), theirs.step(actions)
        same(actual, expected, f"step {step}")
        ended = expected[2] | expected[3]
        terminated, truncated = terminated + expected[2].sum(), truncated + expected[3].sum()
        mixed += ended.any() and not ended.all()
        if mode == AutoresetMode.DISABLED and ended.any():
            same(*(env.reset(options={"reset_mask": ended.copy()}) for env in (ours, theirs)), f"reset after {step}")
    same(ours.np_random_seed, theirs.np_random_seed)
    ours.close()
    theirs.close()
    return terminated, truncated, mixed


@pytest.mark.parametrize(
    "mode", [pytest.param(mode, marks=[pytest.mark.slow] * (mode == AutoresetMode.DISABLED)) for mode in AutoresetMode]
)
def test_equals_single_environments(mode: AutoresetMode, same: Any) -> None:
    terminated, truncated, mixed = run(mode, same, 150)
    assert terminated > 20
    assert truncated > 20
    assert mixed > 20


def test_environments_with_parameters_of_their_own_equal_single_ones(same: Any) -> None:
    """Which keep them through resets; what is observed at a reset follows from them too."""
    ours, _ = make_pair(AutoresetMode.NEXT_STEP)
    mj, rng = ours.unwrapped.model, np.random.default_rng(3)  # type: ignore[attr-defined]
    masses = mj.body_mass * rng.uniform(0.5, 2, (NUM_ENVS, mj.nbody))
    frictions = mj.geom_friction * rng.uniform(0.2, 2, (NUM_ENVS, mj.ngeom, 3))
    terminated, truncated, _ = run(AutoresetMode.SAME_STEP, same, 60, {"body_mass": masses, "geom_friction": frictions})
    assert terminated + truncated > 10


def test_what_a_reset_observes_follows_from_the_parameters() -> None:
    arguments = {"backend": "host", "dtype": "float64", "include_cvel_in_observation": False}
    env = gymnasium.make_vec("simengine/Humanoid-v5", num_envs=3, **arguments).unwrapped
    parts = env.observation_structure
    first = parts["qpos"] + parts["qvel"]
    masses = slice(first + 9, first + parts["cinert"], 10)  # the last of the ten numbers that `cinert` has for a body
    expected = np.tile(env.model.body_mass[1:], (3, 1))
    np.testing.assert_allclose(env.reset(seed=0)[0][:, masses], expected)
    env.set_params([1], body_mass=2 * env.model.body_mass)
    expected[1] *= 2
    only = {"reset_mask": np.array([False, True, False])}
    for options in ({"seed": 0}, {}, {"seed": [None, 5, None], "options": only}, {"options": only}):
        np.testing.assert_allclose(env.reset(**options)[0][:, masses], expected)


def test_equals_single_environments_in_float32(same: Any) -> None:
    terminated, _, mixed = run(AutoresetMode.SAME_STEP, same, 60, dtype="float32")
    assert terminated > 5
    assert mixed > 5


def test_equals_single_environments_with_other_arguments(same: Any) -> None:
    arguments = {
        "healthy_z_range": (0.5, 1.0),
        "include_cfrc_ext_in_observation": False,
        "exclude_current_positions_from_observation": False,
        "main_body": "aux_1",
        "frame_skip": 2,
    }
    run(AutoresetMode.NEXT_STEP, same, 40, **arguments)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_reset_of_some_worlds_in_the_middle(mode: AutoresetMode, same: Any) -> None:
    ours, theirs = make_pair(mode)
    pair = (ours, theirs)
    theirs.action_space.seed(0)
    same(*(env.reset(seed=[4, 40, 9]) for env in pair))
    for round_ in range(6):
        for _ in range(3):
            actions = theirs.action_space.sample()
            same(*(env.step(actions) for env in pair))
        mask = np.arange(NUM_ENVS) == round_ % NUM_ENVS
        seed = None if round_ % 2 else [None, 5, round_]
        same(*(env.reset(seed=seed, options={"reset_mask": mask.copy()}) for env in pair))
    same(*(env.reset() for env in pair))


def test_world_does_not_depend_on_its_batch(same: Any) -> None:
    small, large = (
        gymnasium.make_vec("simengine/Ant-v5", num_envs=n, autoreset_mode="SameStep", max_episode_steps=LIMIT, **SHORT)
        for n in (2, 40)
    )
    small.reset(seed=1)
    large.reset(seed=1)
    rng = np.random.default_rng(0)
    for _ in range(30):
        actions = rng.uniform(-1, 1, (40, 8))
        few, many = small.step(actions[:2]), large.step(actions)
        same(few[:4], tuple(part[:2] for part in many[:4]))


def test_results_are_new_at_every_call() -> None:
    env = gymnasium.make_vec("simengine/Ant-v5", num_envs=2, **SHORT)
    observations, infos = env.reset(seed=0)
    kept, kept_x = observations.copy(), infos["x_position"].copy()
    stepped, *_ = env.step(np.ones((2, 8)))
    stepped[:] = np.nan
    np.testing.assert_array_equal(observations, kept)
    np.testing.assert_array_equal(infos["x_position"], kept_x)
    again, _ = env.reset(options={"reset_mask": np.array([True, False])})
    assert np.isfinite(again).all()


def test_metadata_and_spaces() -> None:
    env = gymnasium.make_vec("simengine/Ant-v5", num_envs=5, backend="host")
    single = gymnasium.make("simengine/Ant-v5", backend="host")
    assert env.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    assert env.metadata["render_fps"] == single.metadata["render_fps"] == 20
    assert env.single_observation_space == single.observation_space
    assert env.single_action_space == single.action_space
    observations, _ = env.reset(seed=0)
    assert observations in env.observation_space
    assert env.spec.max_episode_steps == 1000
    assert type(env).metadata.get("autoreset_mode") is None


def test_default_time_limit_is_gymnasiums() -> None:
    env = gymnasium.make_vec("simengine/Ant-v5", num_envs=2, backend="host", frame_skip=1, healthy_z_range=(-9, 9))
    env.reset(seed=0)
    truncated = [env.step(np.zeros((2, 8)))[3].all() for _ in range(1000)]
    assert truncated == [False] * 999 + [True]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_equals_single_environments_on_cuda(dtype: str, same: Any) -> None:
    terminated, truncated, mixed = run(AutoresetMode.SAME_STEP, same, 60, backend="cuda", dtype=dtype)
    assert min(terminated, truncated, mixed) > 5


@pytest.mark.slow
def test_backend_jax_runs_episodes_as_host_does() -> None:
    """Not bit for bit: XLA rounds otherwise than the host's compiler, and differently for each batch size."""
    pair = [make_pair(AutoresetMode.SAME_STEP, backend=backend)[0] for backend in ("jax", "host")]
    np.testing.assert_allclose(*(env.reset(seed=3)[0] for env in pair), rtol=1e-14)
    rng = np.random.default_rng(0)
    ended = 0
    for _ in range(20):
        actions = rng.uniform(-1, 1, (NUM_ENVS, 8))
        actual, expected = (env.step(actions) for env in pair)
        for part in range(2):
            np.testing.assert_allclose(actual[part], expected[part], atol=1e-6)
        for part in range(2, 4):
            np.testing.assert_array_equal(actual[part], expected[part])
        ended += (expected[2] | expected[3]).sum()
    assert ended >= NUM_ENVS
