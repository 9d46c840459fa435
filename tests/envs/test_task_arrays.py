"""A task's array functions give the same through any array library."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import simengine
from simengine_envs.assets import model_path
from simengine_envs.infos import add_info
from simengine_envs.task import array_namespace
from simengine_envs.tasks.ant import AntTask

N = 6


@pytest.fixture
def fields() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {"qpos": (N, 15), "qvel": (N, 14), "xpos": (N, 14, 3), "cfrc_ext": (N, 14, 6)}
    values = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    values["qpos"][:, 2] = [0.1, 0.2, 0.5, 1.0, 1.1, np.nan]
    return values


def test_ant_in_jax_equals_numpy(fields: dict[str, np.ndarray]) -> None:
    task = AntTask(contact_cost_weight=0.1)
    device = {name: jnp.asarray(value) for name, value in fields.items()}
    action = np.random.default_rng(1).uniform(-1, 1, (N, 8))
    finite = np.array([True, True, True, False, True, True])
    assert array_namespace(device["qpos"]) is jnp
    np.testing.assert_array_equal(task.observation(device), task.observation(fields))
    memory = {name: value - 0.1 for name, value in task.memory(fields).items()}
    expected = task.outcome(memory, fields, action, finite, 0.05)
    actual = task.outcome(
        {name: jnp.asarray(value) for name, value in memory.items()},
        device,
        jnp.asarray(action),
        jnp.asarray(finite),
        0.05,
    )
    np.testing.assert_allclose(actual.reward, expected.reward, rtol=1e-12)
    assert np.asarray(actual.terminated).tolist() == expected.terminated.tolist()
    assert actual.info.keys() == expected.info.keys()
    for key in expected.info:
        np.testing.assert_allclose(actual.info[key], expected.info[key], rtol=1e-12, err_msg=key)


def test_healthy_heights_include_their_ends(fields: dict[str, np.ndarray]) -> None:
    finite = np.ones(N, dtype=bool)
    memory = AntTask().memory(fields)
    terminated = AntTask().outcome(memory, fields, np.zeros((N, 8)), finite, 0.05).terminated
    assert terminated.tolist() == [True, False, False, False, True, True]


def test_derived_fields_are_asked_for_only_when_used() -> None:
    assert AntTask().derived == ("xpos", "cfrc_ext")
    assert AntTask(contact_cost_weight=0).derived == ("xpos", "cfrc_ext")
    assert AntTask(include_cfrc_ext_in_observation=False).derived == ("xpos", "cfrc_ext")
    assert AntTask(include_cfrc_ext_in_observation=False, contact_cost_weight=0).derived == ("xpos",)


def test_main_body_by_name() -> None:
    model = simengine.load_model(model_path("ant.xml"))
    assert AntTask(main_body="torso").resolve(model).main_body == 1
    assert AntTask(main_body=3).resolve(model).main_body == 3


def test_info_of_some_worlds_is_merged_under_masks() -> None:
    infos: dict[str, np.ndarray] = {}
    first = np.array([True, False, False])
    add_info(infos, {"a": np.array([1.0, 2.0, 3.0]), "b": np.array([4.0, 5.0, 6.0])}, first)
    add_info(infos, {"a": np.array([7.0, 8.0, 9.0])}, np.array([False, False, True]))
    add_info(infos, {"c": np.zeros(3)}, np.zeros(3, dtype=bool))
    assert infos["a"].tolist() == [1.0, 0.0, 9.0]
    assert infos["_a"].tolist() == [True, False, True]
    assert infos["b"].tolist() == [4.0, 0.0, 0.0]
    assert infos["_b"].tolist() == [True, False, False]
    assert "c" not in infos
