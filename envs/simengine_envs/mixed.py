"""Several robots in one vector environment: `MixedTask`, `MixedEnv`, `MixedBatchEnv`.

Observations and actions of all robots have the size of the largest. What a robot lacks is zero in an observation, and
is not used in an action.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, cast

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import AutoresetMode

from simengine.errors import did_you_mean
from simengine_envs.options import EngineOptions, pure_env
from simengine_envs.pure import EnvState, PureEnv, StepResult
from simengine_envs.rendering import VECTOR_MODES, Renderer
from simengine_envs.runner import Runner
from simengine_envs.task import Task, Values
from simengine_envs.vector import BatchEnv

States = tuple[EnvState, ...]

SEVERAL_SHAPES = "the parameters of several robots have different shapes; let the task's start randomise them"


class MixedTask(Task):
    """A task that several robots do. Each has a model of its own, and all have spaces of the same size.

    Attributes:
        robots: names of the robots, at least one.
        robot: the robot of this task. A single environment has one robot, by default the first. In a vector environment
            None stands for all.
    """

    robots: tuple[str, ...] = ()
    robot: str | None = None

    def __post_init__(self) -> None:
        """Check the arguments. Raises ValueError."""
        self.check_robots()
        super().__post_init__()

    def check_robots(self) -> None:
        """Raise ValueError if there is no robot, or not the one that is asked for."""
        if not self.robots:
            raise ValueError(f"robots of {type(self).__name__} is empty; name at least one robot")
        if self.robot is not None and self.robot not in self.robots:
            hint = did_you_mean(self.robot, self.robots)
            raise ValueError(f"robot is {self.robot!r}{hint}; give one of {', '.join(self.robots)}, or None")

    def members(self) -> tuple[Self, ...]:
        """The task for each robot; for one only if `robot` names it."""
        names = self.robots if self.robot is None else (self.robot,)
        return tuple(replace(self, robot=name) for name in names)

    @abstractmethod
    def masks(self) -> tuple[np.ndarray, np.ndarray]:
        """Which entries of an observation (size,) and of an action (action size,) the robot has, bool each."""


def shares(num_envs: int, robots: int) -> list[int]:
    """Number of worlds of each robot. The first robots have one more where the worlds cannot be split evenly."""
    return [num_envs // robots + (i < num_envs % robots) for i in range(robots)]


class MixedEnv:
    """Several pure environments as one, with the functions of `PureEnv`. Worlds are ordered by environment.

    A state is a tuple of the states of the environments. Environments without a world have none.

    Args:
        parts: the environments, whose observations, actions and infos have the same shapes.
    """

    def __init__(self, parts: tuple[PureEnv, ...]):
        self.parts = parts
        self.model, self.dt = parts[0].model, parts[0].dt
        self.action_range = parts[0].action_range

    def _split(self, array: Any) -> list[Any]:
        """Pieces of an array for the environments that have worlds."""
        ends = np.cumsum(shares(len(array), len(self.parts)))
        pieces = (array[start:end] for start, end in zip((0, *ends[:-1]), ends, strict=True))
        return [piece for piece in pieces if len(piece)]

    def reset(
        self,
        seeds: jax.Array | np.ndarray | int,
        num_envs: int | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> tuple[States, jax.Array]:
        """As `PureEnv.reset`, without parameters, whose shapes differ between robots. Raises ValueError."""
        if params:
            raise ValueError(SEVERAL_SHAPES)
        if jnp.ndim(seeds) == 0:
            if num_envs is None:
                raise ValueError("one seed needs num_envs; give it, or an array of seeds")
            seeds = jnp.arange(num_envs, dtype=jnp.uint32) + jnp.asarray(seeds, jnp.uint32)
        return _joined(part.reset(piece) for part, piece in zip(self.parts, self._split(seeds), strict=False))

    def restart(self, states: States, mask: jax.Array) -> tuple[States, jax.Array]:
        """As `PureEnv.restart`."""
        pieces = self._split(mask)
        return _joined(part.restart(*own) for part, *own in zip(self.parts, states, pieces, strict=False))

    def merge(self, states: States, others: States, mask: jax.Array) -> tuple[States, jax.Array]:
        """As `PureEnv.merge`."""
        pieces = self._split(mask)
        return _joined(part.merge(*own) for part, *own in zip(self.parts, states, others, pieces, strict=False))

    def info(self, states: States) -> Values:
        """As `PureEnv.info`."""
        found = [part.info(state) for part, state in zip(self.parts, states, strict=False)]
        return {name: jnp.concatenate([one[name] for one in found]) for name in found[0]}

    def step(self, states: States, action: jax.Array) -> tuple[States, StepResult]:
        """As `PureEnv.step`."""
        pieces = self._split(action)
        return _joined(part.step(*own) for part, *own in zip(self.parts, states, pieces, strict=False))


def _joined(found: Any) -> tuple[States, Any]:
    """The states, and what else the environments return, with their worlds one after the other."""
    states, others = zip(*found, strict=True)
    return states, jax.tree.map(lambda *arrays: jnp.concatenate(arrays), *others)


class MixedRunner(Runner):
    """Runs the environments of all robots as one compiled function."""

    @staticmethod
    def _made(
        task: Task, engine: EngineOptions, max_episode_steps: int | None, autoreset_mode: AutoresetMode
    ) -> PureEnv:
        assert isinstance(task, MixedTask), "BatchEnv runs tasks of one robot"
        parts = (pure_env(member, engine, max_episode_steps, autoreset_mode) for member in task.members())
        return cast(PureEnv, MixedEnv(tuple(parts)))


class MixedBatchEnv(BatchEnv):
    """A task in many worlds of several robots: worlds are split evenly, in the order of the robots.

    It has the face of `BatchEnv`: kinds of arrays, autoreset modes, infos.

    Args:
        task: the class of a `MixedTask`, or "module:Class".
        num_envs: number of worlds, at least one for each robot.
        **arguments: as for `BatchEnv`.

    Attributes:
        robot_index: (num_envs,) index of each world's robot.
        observation_mask: (num_envs, size) bool, which entries of an observation the world's robot has.
        action_mask: (num_envs, action size) bool, which entries of an action it uses.

    Raises:
        ValueError: there are fewer worlds than robots, or as for `BatchEnv`.
    """

    runner_type = MixedRunner

    def __init__(self, task: str | type[Task], num_envs: int = 1, **arguments: Any):
        super().__init__(task, num_envs, **arguments)
        self.members = cast(MixedTask, self.task).members()
        if num_envs < len(self.members):
            raise ValueError(f"num_envs is {num_envs}, but there are {len(self.members)} robots; give each a world")
        self.robot_index = np.repeat(np.arange(len(self.members)), shares(num_envs, len(self.members)))
        observed, used = zip(*(member.masks() for member in self.members), strict=True)
        self.observation_mask, self.action_mask = np.stack(observed)[self.robot_index], np.stack(used)[self.robot_index]
        self._renderers = [
            Renderer(member, self.render_mode, self.renderer.options, VECTOR_MODES) for member in self.members
        ]

    @property
    def models(self) -> tuple[Any, ...]:
        """MuJoCo's `MjModel` of each robot, to read from."""
        return tuple(part.model.mj for part in cast(MixedEnv, self.pure).parts)

    @property
    def model(self) -> Any:
        """Raises AttributeError, since there are several models."""
        raise AttributeError("an environment of several robots has no one model; use models, one for each robot")

    def set_params(self, worlds: Any = None, **params: Any) -> None:
        """Raises ValueError, since the robots' parameters have different shapes."""
        raise ValueError(SEVERAL_SHAPES)

    def _pictures(self, worlds: Sequence[int]) -> list[Any]:
        present = [state.worlds for state in cast(States, self.state)]
        host = [tuple(map(np.asarray, (own.qpos, own.qvel, own.nstep))) for own in present]
        first = np.cumsum([0, *(len(steps) for _, _, steps in host)])
        pictures = []
        for world in worlds:
            robot = int(self.robot_index[world])
            qpos, qvel, steps = (array[world - int(first[robot])] for array in host[robot])
            time = float(steps) * self.models[robot].opt.timestep
            pictures.append(self._renderers[robot].render(qpos, qvel, time))
        return pictures

    def close_extras(self, **kwargs: Any) -> None:
        """Close the renderers."""
        super().close_extras(**kwargs)
        for renderer in self._renderers:
            renderer.close()
