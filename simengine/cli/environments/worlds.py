"""`EnvironmentWorlds`: an environment as worlds of the page."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from simengine import Simulation
from simengine.cli.environments.acting import Actor
from simengine.cli.environments.stepping import own_params
from simengine.model.params import WorldParameters
from simengine.view.forces import Forces
from simengine.view.worlds import Inputs, SimulatedWorlds, actuator_names
from simengine_envs import BatchEnv, EnvState

_SHOWN = ("qpos", "qvel", "act", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat", "eq_active")


class EnvironmentWorlds:
    """An environment as worlds of the page. A step is a step of the environment, and episodes restart by themselves.

    What is drawn comes from a simulation that gets the states of the environment. It never steps.

    Args:
        name: the environment's id.
        envs: the environment, with arrays of JAX and worlds of one model.
        actor: what acts.
        seed: seed of world 0; world i has `seed + i`.

    Attributes:
        episodes: number of episodes that have ended.
    """

    def __init__(self, name: str, envs: BatchEnv, actor: Actor, seed: int) -> None:
        self.name, self._envs, self._actor = name, envs, actor
        self._space: Any = envs.single_action_space
        self._held: dict[int, np.ndarray] = {}
        self._steps = self.episodes = 0
        self._sum = 0.0  # of the returns of all episodes that have ended
        self._ended = np.full(envs.num_envs, np.nan)  # return of the last episode of each world
        first = np.asarray(envs.reset(seed=seed)[0])
        self._actions: np.ndarray = np.zeros(envs.action_space.shape or (), np.float32)
        runner = envs.runner
        shown = Simulation(
            envs.pure.model, envs.num_envs, backend=runner.backend, dtype=runner.dtype, on_nonfinite="freeze"
        )
        self._shown = SimulatedWorlds(shown)
        self._own = own_params(envs.pure.model, self._state.params)
        self._table: dict[str, np.ndarray] = {}  # fields of the model table in which the drawn worlds differ
        self._drawn: EnvState | None = None
        self._control: Any = jax.jit(lambda state: envs.pure.task.control(envs.pure.snapshot(state), state.action))
        self._start(first)

    def _start(self, first: np.ndarray) -> None:
        """Compile everything with a step that is taken back, so that the page does not wait for it."""
        start, self._observation = self._state, first
        self.step(1)
        self._draw()
        self._envs.state, self._observation = start, first
        self._steps = self.episodes = 0
        self._sum, self._ended[:], self._actions[:] = 0.0, np.nan, 0

    @property
    def _state(self) -> EnvState:
        state = self._envs.state
        assert state is not None
        return state

    @property
    def mj(self) -> mujoco.MjModel:
        """The compiled model."""
        return self._shown.mj

    @property
    def num_worlds(self) -> int:
        """Number of worlds."""
        return self._envs.num_envs

    @property
    def timestep(self) -> float:
        """Simulated time of one step of the environment [s]."""
        return self._envs.dt

    @property
    def inputs(self) -> Inputs:
        """The action; its numbers have the names of the actuators, if there are as many."""
        ends = zip((self._space.low, self._space.high), (-1.0, 1.0), strict=True)
        low, high = (np.where(np.isfinite(end), end, usual).astype(float) for end, usual in ends)
        names = actuator_names(self.mj)
        same = len(names) == len(low)
        return Inputs("Action", names if same else tuple(f"action {i}" for i in range(len(low))), low, high)

    def note(self, world: int) -> str:
        """What acts, and the returns of the world's episodes and of all that have ended."""
        state = self._state
        number, length, total = (np.asarray(array)[world] for array in (state.episode, state.length, state.total))
        said = f"{self._actor.name}\n\n**return {total:.1f}** in episode {number}, step {length}"
        if np.isfinite(self._ended[world]):
            said += f" · {self._ended[world]:.1f} in the last one"
        if self.episodes:
            said += f"\n\nmean return {self.return_mean:.1f} of {self.episodes} episodes"
        return said

    @property
    def return_mean(self) -> float | None:
        """Mean return of the episodes that have ended; None before the first."""
        return self._sum / self.episodes if self.episodes else None

    def step(self, n: int) -> None:
        """Advance every world by `n` steps of the environment, and wait until they are made."""
        runner = self._envs.runner
        for _ in range(n):
            chosen = np.array(self._actor.act(self._observation, self._steps), np.float32)
            for world, values in self._held.items():
                chosen[world] = values
            with runner.scope():
                actions = jnp.asarray(chosen, runner.dtype)
            seen, _, terminated, truncated, infos = self._envs.step(actions)
            self._observation, self._actions = np.asarray(seen), chosen
            self._steps += 1
            ended = np.asarray(terminated) | np.asarray(truncated)
            if ended.any():
                self._ended[ended] = np.asarray(infos["episode"]["r"])[ended]
                self._sum += float(self._ended[ended].sum())
                self.episodes += int(ended.sum())

    def reset(self, world: int | None = None) -> None:
        """Start the next episode in a world, or in all. Held actions stay, and pushes end."""
        mask = np.full(self.num_worlds, world is None)
        if world is not None:
            mask[world] = True
        self._observation = np.asarray(self._envs.reset(options={"reset_mask": mask})[0])

    def time(self, world: int) -> float:
        """Time since the start of the world's episode [s]."""
        return self._envs.runner.times()[world]

    def frozen(self) -> int:
        """Number of worlds that stand still because their state is not finite. They restart in the next step."""
        return int(np.count_nonzero(np.asarray(self._state.worlds.world_status)))

    def _draw(self) -> SimulatedWorlds:
        """The simulation, in the present state of the environment."""
        state = self._state
        if self._drawn is not state:
            self._draw_params(state)
            with self._envs.runner.scope():
                fields = {"ctrl": np.asarray(self._control(state))}
            fields |= {name: np.asarray(getattr(state.worlds, name)) for name in _SHOWN}
            self._shown.put(**fields)
            self._drawn = state
        return self._shown

    def _draw_params(self, state: EnvState) -> None:
        """Give the worlds of the simulation their own parameters, if they have any and these have changed."""
        table = {name: np.asarray(values).reshape(self.num_worlds, -1) for name, values in state.params.items()}
        if table.keys() == self._table.keys() and all(np.array_equal(table[name], self._table[name]) for name in table):
            return
        self._table = table
        known = WorldParameters(self._envs.pure.model.table)
        given = {name: np.repeat(known.default(name)[None], self.num_worlds, axis=0) for name in self._own}
        (full,) = self._shown.sim.full_state()
        self._shown.sim.set_full_state([{**full, "params": given, "table": table}])

    def geom_poses(self, first: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """Positions (worlds, ngeom, 3) [m] and orientations (worlds, ngeom, 3, 3) of geoms in a range of worlds."""
        return self._draw().geom_poses(first, end)

    def contact_forces(self, world: int) -> Forces:
        """The contacts of a world and their forces."""
        return self._draw().contact_forces(world)

    def applied_forces(self, world: int) -> Forces:
        """The forces `xfrc_applied` on all bodies of a world."""
        return self._draw().applied_forces(world)

    def input(self, world: int) -> np.ndarray:
        """The latest action of a world, (n,)."""
        return self._held.get(world, self._actions[world])

    def is_held(self, world: int) -> bool:
        """Whether `hold` has set the actions of a world."""
        return world in self._held

    def hold(self, world: int, values: np.ndarray | None) -> None:
        """Set the action of a world and hold it, through resets too. None gives the world back to what acts."""
        if values is None:
            self._held.pop(world, None)
        else:
            self._held[world] = np.array(values, np.float32)

    def push(self, world: int, body: int, force: np.ndarray) -> None:
        """Apply a force (3,) [N] to the centre of mass of a body, world frame, until the episode ends."""
        state = self._state
        with self._envs.runner.scope():
            applied = state.worlds.xfrc_applied.at[world, body, :3].set(jnp.asarray(force, state.worlds.qpos.dtype))
        self._envs.state = state._replace(worlds=state.worlds._replace(xfrc_applied=applied))
