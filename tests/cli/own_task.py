"""A module of a user that registers a task, and policies for its environment."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from simengine_training.numpy_policy import NumpyPolicy

MODULE = "tasks_of_a_user"
ID = "Upright-v0"
SOURCE = '''
import jax.numpy as jnp
from simengine_envs import Task, register


class Upright(Task):
    """A cart is to hold a pole upright."""

    xml_file = "inverted_pendulum"
    frame_skip = 2

    def start(self, model, draw, last):
        return {"qpos": draw.uniform((model.nq,), -0.02, 0.02)}

    def rewards(self, before, now):
        return {"alive": jnp.ones(now.qpos.shape[0])}

    def terminated(self, before, now):
        return jnp.abs(now.qpos[:, 1]) > 0.2

    def observation(self, now, draw):
        return jnp.concatenate([now.qpos, now.qvel], axis=1)


class Kicked(Upright):
    """The same, with a kick in the first step of an episode."""

    def event(self, now, draw):
        return {"qvel": now.qvel + 0.5 * (now.length == 0)[:, None]}


class Heavy(Upright):
    """The same, with masses that differ."""

    def start(self, model, draw, last):
        masses = draw.uniform((model.nbody,), 0.8, 1.2) * model.mj.body_mass
        return {**super().start(model, draw, last), "params": {"body_mass": masses}}


register("Upright-v0", Upright, max_episode_steps=40)
register("Kicked-v0", Kicked, max_episode_steps=40)
register("Heavy-v0", Heavy, max_episode_steps=40)
'''


@contextmanager
def in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in a folder that holds the module. Afterwards nothing of it is registered or imported."""
    folder.joinpath(f"{MODULE}.py").write_text(SOURCE, encoding="utf-8")
    known = set(gymnasium.registry)
    with monkeypatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "path", [*sys.path])
        patch.delitem(sys.modules, MODULE, raising=False)
        yield folder
    sys.modules.pop(MODULE, None)
    for name in set(gymnasium.registry) - known:
        del gymnasium.registry[name]


def policy(environment: str = ID, observations: int = 4, gain: float = 1.0) -> NumpyPolicy:
    """A linear policy that holds the pole upright if its gain is 1."""
    weights = np.zeros((observations, 1), np.float32)
    weights[:4, 0] = gain * np.array([0.3, 3.0, 0.4, 0.6])[: len(weights)]
    return NumpyPolicy(
        environment=environment,
        mean=np.zeros(observations),
        deviation=np.ones(observations),
        limit=10.0,
        activation="tanh",
        weights=(weights,),
        biases=(np.zeros(1, np.float32),),
        low=np.full(1, -3, np.float32),
        high=np.full(1, 3, np.float32),
    )
