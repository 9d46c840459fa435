"""`MixedPureEnv`: several robots in many worlds as pure functions of JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.errors import did_you_mean
from simengine_envs.autoreset import AutoresetMode
from simengine_envs.choices import autoreset_mode_of
from simengine_envs.devices import resolved_backend
from simengine_envs.mixed_task import MixedTask
from simengine_envs.options import EngineOptions, pure_env
from simengine_envs.results import EnvState, StepResult
from simengine_envs.task import Values

States = tuple[EnvState, ...]
"""The states of the robots' worlds, without those of robots that have no world."""

RobotParams = Mapping[str, Mapping[str, Any]]
"""By robot, parameters (worlds of the robot, ...) by MuJoCo's name."""


def shares(num_envs: int, robots: int) -> list[int]:
    """Number of worlds of each robot. The first robots have one more where the worlds cannot be split evenly."""
    return [num_envs // robots + (i < num_envs % robots) for i in range(robots)]


class MixedPureEnv:
    """A task in many worlds of several robots, with the functions of `PureEnv`.

    Worlds are split evenly, in the order of the robots. Observations and actions have the size of the largest robot.
    The bits are those of `MixedBatchEnv`. Steps work under `jit` and `lax.scan`.

    Args:
        task: the task.
        backend, dtype, max_episode_steps, autoreset_mode, nconmax, njmax: as for `PureEnv`.

    Attributes:
        task: the task.
        parts: the environment of each robot.
        model: the engine's model of the first robot.
        backend: name of the backend that runs.
        dt: duration of an environment step of the first robot [s].

    Raises:
        ValueError, FileNotFoundError, simengine.errors.BackendError: as for `PureEnv`.
    """

    def __init__(
        self,
        task: MixedTask,
        backend: str = "auto",
        dtype: str = "float32",
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        nconmax: int | None = None,
        njmax: int | None = None,
    ):
        engine = EngineOptions(resolved_backend(backend), np.dtype(dtype).name, nconmax, njmax)
        options = engine, max_episode_steps, autoreset_mode_of(autoreset_mode)
        self.task = task
        self.parts = tuple(pure_env(member, *options) for member in task.members())
        first = self.parts[0]
        self.model, self.dt, self.backend, self.dtype = first.model, first.dt, first.backend, first.dtype
        self.max_episode_steps, self.autoreset_mode = first.max_episode_steps, first.autoreset_mode

    @property
    def robots(self) -> tuple[str, ...]:
        """Names of the robots, in the order of their worlds."""
        return tuple(part.task.robot for part in self.parts)  # type: ignore[attr-defined]

    @property
    def action_size(self) -> int:
        """Number of entries of an action."""
        return self.parts[0].action_size

    def action_range(self) -> tuple[np.ndarray, np.ndarray]:
        """Least and largest actions, (action size,) each."""
        return self.parts[0].action_range()

    def robot_index(self, num_envs: int) -> np.ndarray:
        """Index of each world's robot, (num_envs,)."""
        return np.repeat(np.arange(len(self.parts)), shares(num_envs, len(self.parts)))

    def reset(
        self, seeds: jax.Array | np.ndarray | int, num_envs: int | None = None, params: RobotParams | None = None
    ) -> tuple[States, jax.Array]:
        """As `PureEnv.reset`, with parameters by robot. Raises ValueError for an unknown robot."""
        if jnp.ndim(seeds) == 0:
            if num_envs is None:
                raise ValueError("one seed needs num_envs; give it, or an array of seeds")
            seeds = jnp.arange(num_envs, dtype=jnp.uint32) + jnp.asarray(seeds, jnp.uint32)
        rows = zip(self.parts, self.split(seeds), self.by_robot(params or {}), strict=False)
        return joined(part.reset(piece, None, own) for part, piece, own in rows)

    def restart(self, state: States, mask: jax.Array) -> tuple[States, jax.Array]:
        """As `PureEnv.restart`."""
        return joined(part.restart(*own) for part, *own in zip(self.parts, state, self.split(mask), strict=False))

    def merge(self, state: States, other: States, mask: jax.Array) -> tuple[States, jax.Array]:
        """As `PureEnv.merge`."""
        rows = zip(self.parts, state, other, self.split(mask), strict=False)
        return joined(part.merge(*own) for part, *own in rows)

    def with_params(self, state: States, params: RobotParams) -> States:
        """As `PureEnv.with_params`, with parameters by robot. Raises ValueError for an unknown robot."""
        rows = zip(self.parts, state, self.by_robot(params), strict=False)
        return tuple(part.with_params(own, given) if given else own for part, own, given in rows)

    def info(self, state: States) -> Values:
        """As `PureEnv.info`."""
        found = [part.info(own) for part, own in zip(self.parts, state, strict=False)]
        return {name: jnp.concatenate([one[name] for one in found]) for name in found[0]}

    def step(self, state: States, action: jax.Array) -> tuple[States, StepResult]:
        """As `PureEnv.step`, with actions (n, action size) of the largest robot."""
        return joined(part.step(*own) for part, *own in zip(self.parts, state, self.split(action), strict=False))

    def stall_message(self, stalled: np.ndarray) -> str:
        """As `PureEnv.stall_message`, of the first robot whose worlds stood still."""
        pieces = zip(self.parts, self.split(stalled), strict=False)
        return next(part.stall_message(piece) for part, piece in pieces if piece.any())

    def split(self, array: Any) -> list[Any]:
        """Pieces of an array for the robots that have worlds."""
        ends = np.cumsum(shares(len(array), len(self.parts)))
        pieces = (array[start:end] for start, end in zip((0, *ends[:-1]), ends, strict=True))
        return [piece for piece in pieces if len(piece)]

    def by_robot(self, params: RobotParams) -> Sequence[Mapping[str, Any]]:
        """Parameters of each robot, in order. Raises ValueError for an unknown robot."""
        for robot in params:
            if robot not in self.robots:
                hint = did_you_mean(robot, self.robots)
                raise ValueError(
                    f"params name {robot!r}, which is no robot{hint}; give one of {', '.join(self.robots)}"
                )
        return [params.get(robot, {}) for robot in self.robots]


def joined(found: Any) -> tuple[States, Any]:
    """The states, and what else the environments return, with their worlds one after the other."""
    states, others = zip(*found, strict=True)
    return states, jax.tree.map(lambda *arrays: jnp.concatenate(arrays), *others)
