"""What Gymnasium expects of an environment: registration, its checker, rendering."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import simengine_envs
from simengine_envs.camera import followed_body
from simengine_envs.options import split_arguments
from simengine_envs.registration import REGISTRATIONS
from simengine_envs.rendering import Renderer, RenderOptions

GYMNASIUMS = [item for item in REGISTRATIONS if item.id.endswith("-v5")]
"""The tasks that Gymnasium has too."""


def test_checker_finds_nothing_but_the_unbounded_observations() -> None:
    env = gymnasium.make("simengine/Ant-v5", backend="host")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(env.unwrapped, skip_render_check=True)
    messages = [str(warning.message) for warning in caught]
    assert len(messages) == 2, messages
    assert all("Box observation space" in message and "infinity" in message for message in messages)


def test_registering_twice_changes_nothing() -> None:
    before = dict(gymnasium.registry)
    simengine_envs.register_envs()
    assert dict(gymnasium.registry) == before
    assert {f"simengine/{item.id}" for item in REGISTRATIONS} <= before.keys()


def test_ids_are_the_same_inside_a_plugin_namespace() -> None:
    saved = gymnasium.registry.pop("simengine/Ant-v5")
    try:
        with gymnasium.envs.registration.namespace("simengine"):
            simengine_envs.register_envs()
        assert gymnasium.registry["simengine/Ant-v5"] == saved
        assert "simengine/simengine/Ant-v5" not in gymnasium.registry
    finally:
        gymnasium.registry["simengine/Ant-v5"] = saved


@pytest.mark.parametrize("item", GYMNASIUMS, ids=lambda item: item.id)
def test_specification_is_gymnasiums(item: Any) -> None:
    ours, reference = gymnasium.spec(f"simengine/{item.id}"), gymnasium.spec(item.id)
    assert ours.max_episode_steps == reference.max_episode_steps
    assert ours.reward_threshold == reference.reward_threshold
    assert ours.version == reference.version


@pytest.mark.parametrize("item", GYMNASIUMS, ids=lambda item: item.id)
def test_spaces_and_metadata_are_gymnasiums(item: Any) -> None:
    ours, reference = gymnasium.make(f"simengine/{item.id}", backend="host"), gymnasium.make(item.id)
    assert ours.observation_space == reference.observation_space
    assert ours.action_space == reference.action_space
    assert ours.metadata == reference.metadata
    assert ours.unwrapped.dt == reference.unwrapped.dt
    structure = getattr(reference.unwrapped, "observation_structure", None)  # some of Gymnasium's do not say
    assert structure is None or ours.unwrapped.observation_structure == structure


def test_environment_is_remade_from_its_specification_and_from_a_pickle() -> None:
    env = gymnasium.make("simengine/Ant-v5", backend="host", healthy_reward=3.0)
    first = env.reset(seed=2)[0]
    for copy in (gymnasium.make(env.spec), pickle.loads(pickle.dumps(env.unwrapped))):
        np.testing.assert_array_equal(copy.reset(seed=2)[0], first)
        assert copy.unwrapped.task.healthy_reward == 3.0


def test_state_can_be_set_and_read() -> None:
    env = gymnasium.make("simengine/Ant-v5", backend="host", dtype="float64").unwrapped
    env.reset(seed=0)
    qpos, qvel = env.model.qpos0 + 0.01, np.full(env.model.nv, 0.1)
    env.set_state(qpos, qvel)
    np.testing.assert_array_equal(env.state_vector(), np.concatenate([qpos, qvel]))


def test_window_is_drawn_at_every_reset_and_step(monkeypatch: pytest.MonkeyPatch) -> None:
    env = gymnasium.make("simengine/Ant-v5", backend="host", dtype="float64", render_mode="human").unwrapped
    drawn: list[tuple[np.ndarray, float]] = []
    monkeypatch.setattr(env.renderer, "render", lambda qpos, qvel, time: drawn.append((np.append(qpos, qvel), time)))
    env.reset(seed=0)
    states = [env.state_vector()]
    env.step(np.ones(8))
    states.append(env.state_vector())
    np.testing.assert_array_equal([state for state, _ in drawn], states)
    assert [time for _, time in drawn] == [0.0, pytest.approx(env.dt)]


def test_wrappers_of_vector_environments_work() -> None:
    envs_ = gymnasium.make_vec("simengine/Ant-v5", num_envs=2, backend="host", max_episode_steps=4)
    recorded = gymnasium.wrappers.vector.RecordEpisodeStatistics(gymnasium.wrappers.vector.NormalizeObservation(envs_))
    recorded.reset(seed=0)
    infos = [recorded.step(recorded.action_space.sample())[4] for _ in range(4)]
    assert infos[3]["episode"]["l"].tolist() == [4, 4]


def test_closing_twice_is_allowed() -> None:
    env = gymnasium.make("simengine/Ant-v5", backend="host")
    env.close()
    env.close()


@pytest.fixture(scope="module")
def offscreen() -> Iterator[None]:
    """An off-screen OpenGL context for MuJoCo; skips the test where there is none.

    Tried in a process of its own, since a failed attempt leaves half-made contexts behind.
    """
    probe = "import gymnasium as g; e = g.make('Ant-v5', render_mode='rgb_array'); e.reset(); e.render()"
    with pytest.MonkeyPatch.context() as patch:
        if "MUJOCO_GL" not in os.environ:
            patch.setenv("MUJOCO_GL", "egl")
        if subprocess.run([sys.executable, "-c", probe], capture_output=True).returncode:
            pytest.skip(f"MuJoCo opens no off-screen OpenGL context with MUJOCO_GL={os.environ['MUJOCO_GL']}")
        yield


@pytest.mark.usefixtures("offscreen")
@pytest.mark.parametrize("mode", ["rgb_array", "depth_array", "rgbd_tuple"])
def test_picture_is_gymnasiums(mode: str) -> None:
    pictures = assert_same_pictures("Ant-v5", mode)
    assert len(pictures) == (2 if mode == "rgbd_tuple" else 1)


@pytest.mark.slow
@pytest.mark.usefixtures("offscreen")
@pytest.mark.parametrize("item", GYMNASIUMS, ids=lambda item: item.id)
def test_picture_of_every_task_is_gymnasiums(item: Any) -> None:
    assert_same_pictures(item.id, "rgb_array")


def assert_same_pictures(name: str, mode: str) -> list[np.ndarray]:
    """Draw one state with our environment and with Gymnasium's, with their default cameras, and return the pictures."""
    options = {"render_mode": mode, "width": 64, "height": 48}
    ours = gymnasium.make(f"simengine/{name}", backend="host", dtype="float64", **options).unwrapped
    reference = gymnasium.make(name, **options).unwrapped
    ours.reset(seed=3)
    reference.reset()
    reference.set_state(*np.split(ours.state_vector(), [reference.model.nq]))
    drawn = [env.render() for env in (ours, reference)]
    ours.close()
    reference.close()
    pictures = [picture if isinstance(picture, tuple) else (picture,) for picture in drawn]
    for actual, expected in zip(*pictures, strict=True):
        assert actual.std() > 0
        np.testing.assert_array_equal(actual, expected)
    return list(pictures[0])


FOLLOWED = {
    "Ant-v5": "torso",
    "HalfCheetah-v5": "torso",
    "Hopper-v5": "thigh",
    "Humanoid-v5": "torso",
    "HumanoidStandup-v5": "torso",
    "Swimmer-v5": "torso",
    "Walker2d-v5": "thigh",
    "BipedFlat-v0": "pelvis",
    "BipedRough-v0": "pelvis",
    "MixedLocomotion-v0": "torso",
    "QuadrupedFlat-v0": "trunk",
    "QuadrupedRough-v0": "trunk",
}
"""The tasks whose robots can leave the picture, and the body that the camera follows."""
OTHERS = {"G1Flat-v0", "G1Rough-v0", "Go1Flat-v0", "Go1Rough-v0"}  # models of another package


@pytest.mark.parametrize("item", [item for item in REGISTRATIONS if item.id not in OTHERS], ids=lambda item: item.id)
def test_camera_follows_robots_that_move(item: Any) -> None:
    arguments = dict(gymnasium.spec(f"simengine/{item.id}").kwargs)
    task = split_arguments(arguments.pop("task"), arguments)[0]
    model = task.load().mj
    body = followed_body(model, task.default_camera_config)
    assert (None if body is None else model.body(body).name) == FOLLOWED.get(item.id)


def test_camera_follows_each_robot_of_a_mixed_batch() -> None:
    parts = simengine_envs.make_pure("simengine/MixedLocomotion-v0", backend="host").parts
    bodies = [followed_body(part.model.mj, part.task.default_camera_config) for part in parts]
    names = [part.model.mj.body(body).name for part, body in zip(parts, bodies, strict=True)]
    assert names[:3] == ["torso", "torso", "trunk"]
    assert bodies[3:] == [1, 1]


@pytest.mark.usefixtures("offscreen")
@pytest.mark.parametrize("name", ["Ant-v5", "Hopper-v5"])
def test_a_robot_that_has_walked_away_is_in_the_picture(name: str) -> None:
    """The same pose 10 m away has the same depths."""
    arguments = dict(gymnasium.spec(f"simengine/{name}").kwargs)
    task = split_arguments(arguments.pop("task"), arguments)[0]
    renderer = Renderer(task, "depth_array", RenderOptions(width=64, height=48))
    qpos, qvel = task.load().mj.qpos0.copy(), np.zeros(task.load().mj.nv)
    at_home = renderer.render(qpos, qvel, 0.0)
    qpos[0] += 10
    away = renderer.render(qpos, qvel, 1.0)
    renderer.close()
    first_seen_away = renderer.render(qpos, qvel, 1.0)
    renderer.close()
    assert at_home.std() > 0
    pictures = [away, first_seen_away] if name == "Hopper-v5" else [away]  # Ant's first picture is aimed at its geoms
    for picture in pictures:
        assert np.isclose(picture, at_home, rtol=0, atol=1e-5).mean() > 0.99  # all but the floor's edge


@pytest.mark.usefixtures("offscreen")
def test_renderers_of_several_models_draw_in_turn() -> None:
    """Each has a context of its own, with its own textures."""
    renderers, states = [], []
    for name in ("Ant-v5", "QuadrupedFlat-v0"):
        arguments = dict(gymnasium.spec(f"simengine/{name}").kwargs)
        task = split_arguments(arguments.pop("task"), arguments)[0]
        renderers.append(Renderer(task, "rgb_array", RenderOptions(width=64, height=48)))
        states.append((task.load().mj.qpos0, np.zeros(task.load().mj.nv), 0.0))
    first, second = ([renderer.render(*state) for renderer, state in zip(renderers, states, strict=True)] for _ in "ab")
    for renderer in renderers:
        renderer.close()
    np.testing.assert_array_equal(first, second)


@pytest.mark.usefixtures("offscreen")
def test_vector_environment_draws_each_world() -> None:
    env = gymnasium.make_vec(
        "simengine/Ant-v5", num_envs=2, render_mode="rgb_array", width=64, height=48, backend="host"
    )
    env.reset(seed=0)
    first, second = env.render()
    env.close()
    assert first.shape == second.shape == (48, 64, 3)
    assert (first != second).any()
