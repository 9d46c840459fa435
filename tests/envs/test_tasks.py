"""What tasks promise apart from Gymnasium's: limits, fields that they ask for, names that they look up."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import simengine
from simengine_envs import Snapshot, Task
from simengine_envs.assets import model_path
from simengine_envs.infos import add_info
from simengine_envs.tasks.ant import Ant
from simengine_envs.tasks.hopper import Hopper
from simengine_envs.tasks.humanoid import Humanoid
from simengine_envs.tasks.humanoid_standup import HumanoidStandup
from simengine_envs.tasks.reacher import Reacher


def snapshot(task: Task, **fields: Any) -> Snapshot:
    """Worlds at rest at `qpos0`, with other values of some fields, of all worlds or one entry for each."""
    model = simengine.load_model(model_path(task.xml_file))
    count = len(next(iter(fields.values())))
    values = {"qpos": jnp.tile(model.mj.qpos0, (count, 1)), "qvel": jnp.zeros((count, model.nv)), **fields}
    zero = jnp.zeros(count, jnp.int32)
    return Snapshot(values, {}, jnp.zeros((count, model.nu)), zero, jnp.ones(count, bool), 0.05, model)


def ends(task: Task, height_index: int, heights: list[float]) -> list[bool]:
    """Whether episodes end at these heights."""
    start = snapshot(task, heights=jnp.asarray(heights))
    now = snapshot(task, qpos=start.qpos.at[:, height_index].set(jnp.asarray(heights)))
    return np.asarray(task.terminated(start, now)).tolist()


def test_healthy_heights_of_ant_include_their_ends() -> None:
    assert ends(Ant(), 2, [0.1, 0.2, 0.5, 1.0, 1.1, np.nan]) == [True, False, False, False, True, True]


@pytest.mark.parametrize(("task", "index"), [(Hopper(healthy_z_range=(1, 2)), 1), (Humanoid(), 2)])
def test_healthy_heights_of_other_robots_exclude_their_ends(task: Task, index: int) -> None:
    assert ends(task, index, [0.9, 1.0, 1.4, 2.0, 2.1, np.nan]) == [True, True, False, True, True, True]


def test_a_stopped_world_is_not_healthy() -> None:
    task = Hopper()
    now = snapshot(task, heights=jnp.zeros(1))
    stopped = Snapshot(**{**vars(now), "finite": jnp.zeros(1, bool)})
    assert [bool(task.terminated(now, end)[0]) for end in (now, stopped)] == [False, True]
    assert [float(task.rewards(now, end)["survive"][0]) for end in (now, stopped)] == [1.0, 0.0]


def test_derived_fields_are_asked_for_only_when_used() -> None:
    assert Ant().derived == ("xpos", "cfrc_ext")
    assert Ant(contact_cost_weight=0).derived == ("xpos", "cfrc_ext")
    assert Ant(include_cfrc_ext_in_observation=False).derived == ("xpos", "cfrc_ext")
    assert Ant(include_cfrc_ext_in_observation=False, contact_cost_weight=0).derived == ("xpos",)
    nothing = {f"include_{name}_in_observation": False for name in ("cinert", "cvel", "qfrc_actuator", "cfrc_ext")}
    assert set(Humanoid(**nothing).derived) == {"ten_length", "ten_velocity", "subtree_com", "cfrc_ext"}
    assert set(HumanoidStandup(impact_cost_weight=0, **nothing).derived) == {"ten_length", "ten_velocity"}


def test_main_body_by_name() -> None:
    model = simengine.load_model(model_path("ant.xml"))
    assert Ant(main_body="torso").resolve(model).main_body == 1
    assert Ant(main_body=3).resolve(model).main_body == 3


def test_a_model_without_a_body_that_the_task_needs() -> None:
    task = Reacher(xml_file="ant.xml")
    now = snapshot(task, xpos=jnp.zeros((1, 14, 3)))
    with pytest.raises(ValueError, match="Reacher: the model has no body 'fingertip'") as caught:
        task.rewards(now, now)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("task", "arguments", "message"),
    [
        (Hopper, {"healthy_state_range": (1.0, 0.0)}, "Hopper: healthy_state_range must be"),
        (Hopper, {"healthy_angle_range": (1.0, 0.0)}, "Hopper: healthy_angle_range must be"),
        (Humanoid, {"contact_cost_range": (1.0, 0.0)}, "Humanoid: contact_cost_range must be"),
        (HumanoidStandup, {"impact_cost_range": (1.0, 0.0)}, "HumanoidStandup: impact_cost_range must be"),
        (HumanoidStandup, {"reset_noise_scale": -1.0}, "HumanoidStandup: reset_noise_scale must not be negative"),
        (Reacher, {"frame_skip": 0}, "Reacher: frame_skip must be at least 1"),
    ],
)
def test_arguments_out_of_range(task: type[Task], arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        task(**arguments)


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
