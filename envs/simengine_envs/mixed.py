"""Several robots in one vector environment: `MixedBatchEnv`.

Observations and actions of all robots have the size of the largest. What a robot lacks is zero in an observation, and
is not used in an action.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import jax
import numpy as np

from simengine.errors import did_you_mean
from simengine_envs.autoreset import AutoresetMode
from simengine_envs.mixed_pure import MixedPureEnv, States, joined
from simengine_envs.mixed_task import MixedTask
from simengine_envs.options import EngineOptions
from simengine_envs.pure import PureEnv
from simengine_envs.rendering import VECTOR_MODES, Renderer
from simengine_envs.results import EnvState
from simengine_envs.runner import Runner, with_given
from simengine_envs.task import Task
from simengine_envs.vector import BatchEnv


class MixedRunner(Runner):
    """Runs the environments of all robots as one compiled function."""

    @staticmethod
    def _made(
        task: Task, engine: EngineOptions, max_episode_steps: int | None, autoreset_mode: AutoresetMode
    ) -> PureEnv:
        assert isinstance(task, MixedTask), "BatchEnv runs tasks of one robot"
        options = engine.backend, engine.dtype, max_episode_steps, autoreset_mode, engine.nconmax, engine.njmax
        return cast(PureEnv, MixedPureEnv(task, *options))

    def set_params(self, worlds: Any, params: dict[str, Any]) -> None:
        """Set parameters of some worlds; see `MixedBatchEnv.set_params`."""
        env = cast(MixedPureEnv, self.env)
        index, mask = env.robot_index(self.num_envs), np.zeros(self.num_envs, bool)
        mask[slice(None) if worlds is None else np.asarray(worlds)] = True
        given = dict(self._given_by_robot)
        for number, (robot, part) in enumerate(zip(env.robots, env.parts, strict=True)):
            own = {name: value[robot] for name, value in params.items() if robot in _by_robot(name, value, env.robots)}
            chosen = mask[index == number]
            given[robot] = with_given(given.get(robot, {}), part.model, len(chosen), chosen, own)
        self._given_by_robot = given
        self._apply_params()

    def _started(self, seeds: np.ndarray) -> tuple[Any, jax.Array]:
        if not self._given_by_robot:
            return super()._started(seeds)
        env = cast(MixedPureEnv, self.env)
        rows = zip(env.parts, env.split(seeds), env.by_robot(self._params()), strict=False)
        return joined(self._alone(part, "reset", piece, None, own) for part, piece, own in rows)

    def _apply_params(self) -> None:
        env = cast(MixedPureEnv, self.env)
        if self.state is None:
            return
        rows = zip(env.parts, cast(States, self.state), env.by_robot(self._params()), strict=False)
        states = tuple(self._alone(part, "with_params", own, given) if given else own for part, own, given in rows)
        self.state = cast(EnvState, states)

    def _alone(self, part: PureEnv, name: str, *arguments: Any) -> Any:
        """Call a function of one robot's environment, and wait for it.

        Parameters of several robots in one program would be as many solves of triangular matrices at once, for which
        JAX on a CPU may not have enough threads; see `simengine.jax_settings`.
        """
        functions = part.__dict__.setdefault("_compiled", {})
        if name not in functions:
            functions[name] = jax.jit(getattr(part, name))
        with self.scope():
            return jax.block_until_ready(functions[name](*arguments))

    def _params(self) -> Any:
        return {
            robot: {name: value.astype(self.dtype) for name, value in own.items()}
            for robot, own in self._given_by_robot.items()
        }

    @cached_property
    def _given_by_robot(self) -> dict[str, dict[str, np.ndarray]]:
        return {}


def _by_robot(name: str, value: Any, robots: tuple[str, ...]) -> Mapping[str, Any]:
    """A parameter by robot. Raises ValueError if it is no mapping, or one that names an unknown robot."""
    if not isinstance(value, Mapping):
        raise ValueError(
            f"{name} is one array, but the parameters of several robots have different shapes; give it by robot, as in "
            f"{name}={{{robots[0]!r}: ...}}"
        )
    for robot in value:
        if robot not in robots:
            hint = did_you_mean(str(robot), robots)
            raise ValueError(f"{name} names {robot!r}, which is no robot{hint}; give one of {', '.join(robots)}")
    return value


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
        self.robot_index = cast(MixedPureEnv, self.pure).robot_index(num_envs)
        observed, used = zip(*(member.masks() for member in self.members), strict=True)
        self.observation_mask, self.action_mask = np.stack(observed)[self.robot_index], np.stack(used)[self.robot_index]
        self._renderers = [
            Renderer(member, self.render_mode, self.renderer.options, VECTOR_MODES) for member in self.members
        ]

    @property
    def models(self) -> tuple[Any, ...]:
        """MuJoCo's `MjModel` of each robot, to read from."""
        return tuple(part.model.mj for part in cast(MixedPureEnv, self.pure).parts)

    @property
    def model(self) -> Any:
        """Raises AttributeError, since there are several models."""
        raise AttributeError("an environment of several robots has no one model; use models, one for each robot")

    def set_params(self, worlds: Any = None, **params: Any) -> None:
        """Set parameters of some worlds, by robot: `set_params(body_mass={"ant": masses})`.

        Args:
            worlds: None for all worlds, a boolean mask (num_envs,), or indices. The values of a robot are for those of
                these worlds that have the robot.
            params: by name a mapping from robots to values in MuJoCo's shapes, with or without a first axis for the
                worlds. Robots that it does not name keep theirs. A reset does not change them.

        Raises:
            ValueError: a robot or a name is unknown, or a value is not by robot or has a wrong shape.
        """
        self.runner.set_params(worlds, params)

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
