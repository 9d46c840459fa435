"""Weights of reward terms: what is given is merged with what the task has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simengine_envs import PureEnv, Snapshot, StepResult, Task
from simengine_envs.options import task_class
from simengine_envs.registration import REGISTRATIONS
from simengine_envs.tasks.cartpole import CartPoleSwingUp
from simengine_envs.tasks.mixed_locomotion import MixedLocomotion
from simengine_envs.tasks.pickup import PickUp


@pytest.mark.parametrize("item", REGISTRATIONS, ids=lambda item: item.id)
def test_other_weights_of_a_task_remain(item: Any) -> None:
    cls = task_class(item.task)
    weights = cls(**item.arguments).weights
    for name in weights:
        assert cls(**item.arguments, weights={name: 7.0}).weights == {**weights, name: 7.0}
    assert cls(**item.arguments, weights={"further": 2.0}).weights == {**weights, "further": 2.0}


def stepped(task: Task) -> StepResult:
    env = PureEnv(task, "host")
    state, _ = env.reset(0, 2)
    result: StepResult = env.step(state, jnp.full((2, env.action_size), 0.5))[1]
    return result


@pytest.mark.slow
@pytest.mark.parametrize("cls", [CartPoleSwingUp, PickUp, MixedLocomotion], ids=lambda cls: cls.__name__)
def test_a_given_weight_changes_its_term_only(cls: type[Task]) -> None:
    with jax.enable_x64(False):
        plain = stepped(cls())
        terms = {name: value for name, value in plain.info.items() if name.startswith("reward_")}
        chosen = next(name for name in terms if name.removeprefix("reward_") not in cls().weights or len(terms) == 1)
        changed = stepped(cls(weights={chosen.removeprefix("reward_"): 3.0}))
    for name, value in terms.items():
        np.testing.assert_allclose(changed.info[name], 3 * value if name == chosen else value, rtol=1e-6)
    assert any((np.asarray(value) < 0).all() for value in terms.values())  # a cost that remains a cost
    np.testing.assert_allclose(changed.reward, sum(changed.info[name] for name in terms), rtol=1e-5)


class Shorter(CartPoleSwingUp):
    """A cart pole without a cost."""

    def rewards(self, before: Snapshot, now: Snapshot) -> Mapping[str, Any]:
        return {"upright": super().rewards(before, now)["upright"]}


class Doubled(CartPoleSwingUp):
    """A cart pole that earns twice as much; the cost remains."""

    weights = {"upright": 2.0}  # noqa: RUF012


class Hasty(CartPoleSwingUp):
    """A task that does not call its base."""

    def __post_init__(self) -> None:
        pass


def test_a_subclass_keeps_the_weights_of_its_base() -> None:
    assert Doubled().weights == {"control": -0.01, "upright": 2.0}
    assert (np.asarray(stepped(Doubled()).info["reward_control"]) < 0).all()


def test_a_subclass_may_have_fewer_terms() -> None:
    result = stepped(Shorter())
    np.testing.assert_array_equal(result.reward, result.info["reward_upright"])


@pytest.mark.parametrize("task", [CartPoleSwingUp(weights={"uprigt": 1.0}), Shorter(weights={"uprigt": 1.0})])
def test_a_weight_for_an_unknown_term_names_the_nearest(task: Task) -> None:
    with pytest.raises(ValueError, match="name 'uprigt', which is no reward term.*did you mean 'upright'"):
        stepped(task)


def test_a_weight_for_a_term_that_a_subclass_left_out_is_refused() -> None:
    with pytest.raises(ValueError, match="name 'control', which is no reward term"):
        stepped(Shorter(weights={"control": -1.0}))


def test_a_task_that_does_not_call_its_base_is_refused() -> None:
    with pytest.raises(TypeError, match=r"__post_init__ of task Hasty must call super\(\).__post_init__"):
        PureEnv(Hasty(weights={"upright": 1.0}), "host")
