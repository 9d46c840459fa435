"""`Worlds`: what the page needs of that which steps; and `SimulatedWorlds`, which is a simulation."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import mujoco
import numpy as np

from simengine.arrays import to_host
from simengine.simulation import Simulation
from simengine.view.forces import Forces, contact_forces

HELD_FOR = 0.1
"""How long random controls are held [s]."""


class Inputs(NamedTuple):
    """What a user can hold in a world by sliders: the controls of a simulation, or the action of an environment.

    Attributes:
        title: what they are, such as "Controls".
        names: name of each number.
        low, high: least and largest values, (n,).
    """

    title: str
    names: tuple[str, ...]
    low: np.ndarray
    high: np.ndarray


class Worlds(Protocol):
    """Worlds of one model that step together. One thread calls all methods."""

    @property
    def mj(self) -> mujoco.MjModel:
        """The compiled model."""

    @property
    def name(self) -> str:
        """What the page is called."""

    @property
    def num_worlds(self) -> int:
        """Number of worlds."""

    @property
    def timestep(self) -> float:
        """Simulated time of one step [s]."""

    @property
    def inputs(self) -> Inputs:
        """What `hold` sets."""

    def note(self, world: int) -> str:
        """What else the page tells of a world, in Markdown; empty for nothing."""

    def step(self, n: int) -> None:
        """Advance every world by `n` steps, and wait until they are made."""

    def reset(self, world: int | None = None) -> None:
        """Set a world, or all, back to the initial state."""

    def time(self, world: int) -> float:
        """Time since the world's reset [s]."""

    def frozen(self) -> int:
        """Number of worlds that stand still because their state is not finite."""

    def geom_poses(self, first: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """Positions (worlds, ngeom, 3) [m] and orientations (worlds, ngeom, 3, 3) of geoms in a range of worlds."""

    def contact_forces(self, world: int) -> Forces:
        """The contacts of a world and their forces."""

    def applied_forces(self, world: int) -> Forces:
        """The forces `xfrc_applied` on all bodies of a world."""

    def input(self, world: int) -> np.ndarray:
        """The present inputs of a world, (n,)."""

    def is_held(self, world: int) -> bool:
        """Whether `hold` has set the inputs of a world."""

    def hold(self, world: int, values: np.ndarray | None) -> None:
        """Set the inputs of a world and hold them; None lets them go."""

    def push(self, world: int, body: int, force: np.ndarray) -> None:
        """Apply a force (3,) [N] to the centre of mass of a body, world frame, in place of the force there before."""


def actuator_names(mj: mujoco.MjModel) -> tuple[str, ...]:
    """Return the name of each actuator, or of the joint that it drives if it has none."""
    return tuple(_actuator_name(mj, index) for index in range(mj.nu))


def _actuator_name(mj: mujoco.MjModel, index: int) -> str:
    own = mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_ACTUATOR, index)
    joint = ""
    if not own and mj.actuator_trntype[index] == int(mujoco.mjtTrn.mjTRN_JOINT):
        joint = mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_JOINT, int(mj.actuator_trnid[index, 0]))
    return own or joint or f"actuator {index}"


def control_range(mj: mujoco.MjModel) -> np.ndarray:
    """Return the control range of each actuator, (nu, 2): -1 to 1 where it has none."""
    return np.where(np.asarray(mj.actuator_ctrllimited, bool)[:, None], mj.actuator_ctrlrange, (-1.0, 1.0))


class SimulatedWorlds:
    """A simulation of one model as worlds of the page.

    Args:
        sim: the simulation. Create it with on_nonfinite="freeze" or "reset", so that a bad world does not end the page.
        keyframe: name or number of the keyframe to which `reset` sets worlds; None for the initial state.
        random: whether each world's controls are drawn anew, uniformly within the control range, every tenth of a
            second. If not, they are those of the initial state.
        seed: seed of the random controls.

    Raises:
        ValueError: the model has no such keyframe.
    """

    def __init__(self, sim: Simulation, keyframe: int | str | None = None, random: bool = False, seed: int = 0):
        self.sim = sim
        self._keyframe = keyframe
        self._random = random and sim.model.nu > 0
        self._rng = np.random.default_rng(seed)
        self._held: dict[int, np.ndarray] = {}
        self._since_draw = 0
        self._evaluated = False  # whether derived fields and contacts are those of the present state
        sim.reset(keyframe=keyframe)
        self._initial_ctrl = np.array(to_host(sim.ctrl)[0])

    @property
    def mj(self) -> mujoco.MjModel:
        """The compiled model."""
        return self.sim.model.mj

    @property
    def name(self) -> str:
        """The model's name."""
        return self.sim.model.name

    @property
    def num_worlds(self) -> int:
        """Number of worlds."""
        return self.sim.num_worlds

    @property
    def timestep(self) -> float:
        """Simulated time of one step [s]."""
        return float(self.mj.opt.timestep)

    @property
    def inputs(self) -> Inputs:
        """The controls."""
        return Inputs("Controls", actuator_names(self.mj), *control_range(self.mj).T)

    def note(self, world: int) -> str:
        """Nothing."""
        return ""

    def step(self, n: int) -> None:
        """Advance every world by `n` steps, and wait until they are made."""
        hold = max(1, round(HELD_FOR / self.timestep))
        left = n
        while left:
            if self._random and self._since_draw == 0:
                self._draw()
            steps = min(left, hold - self._since_draw)
            self.sim.step(steps)
            self._since_draw = (self._since_draw + steps) % hold
            left -= steps
        self.sim.synchronize()
        self._evaluated = False

    def _draw(self) -> None:
        low, high = control_range(self.mj).T
        controls = self._rng.uniform(low, high, (self.num_worlds, self.mj.nu))
        for world, ctrl in self._held.items():
            controls[world] = ctrl
        self.sim.set_state(ctrl=controls)

    def put(self, **fields: np.ndarray) -> None:
        """Set state fields of all worlds; see `Simulation.set_state`."""
        self.sim.set_state(**fields)
        self._evaluated = False

    def reset(self, world: int | None = None) -> None:
        """Set a world, or all, back to the initial state. Held controls stay, and pushes end."""
        self.sim.reset(None if world is None else [world], self._keyframe)
        for index, ctrl in self._held.items():
            self.sim.set_state([index], ctrl=ctrl)
        self._since_draw = 0
        self._evaluated = False

    def time(self, world: int) -> float:
        """Time since the world's reset [s]."""
        return float(self.sim.time[world])

    def frozen(self) -> int:
        """Number of worlds that stand still because their state is not finite."""
        return int(np.count_nonzero(to_host(self.sim.field("world_status"))))

    def geom_poses(self, first: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """Positions (worlds, ngeom, 3) [m] and orientations (worlds, ngeom, 3, 3) of geoms in a range of worlds."""
        self._evaluate()
        xpos, xmat = (np.array(to_host(self.sim.field(name)[first:end])) for name in ("geom_xpos", "geom_xmat"))
        return xpos, xmat.reshape(*xmat.shape[:2], 3, 3)

    def _evaluate(self) -> None:
        """Fill derived fields from the state. It changes no bit of later steps."""
        if not self._evaluated:
            self.sim.forward()
            self._evaluated = True

    def contact_forces(self, world: int) -> Forces:
        """The contacts of a world and their forces."""
        self._evaluate()
        friction = to_host(self.sim.params("geom_friction")[world])
        return contact_forces(self.mj, self.sim.contacts(world), self.sim.constraints(world), friction)

    def applied_forces(self, world: int) -> Forces:
        """The forces `xfrc_applied` on all bodies of a world."""
        self._evaluate()
        pos, applied = (np.array(to_host(self.sim.field(name)[world])) for name in ("xipos", "xfrc_applied"))
        return Forces(pos, applied[:, :3])

    def input(self, world: int) -> np.ndarray:
        """Controls of a world, (nu,)."""
        return np.array(to_host(self.sim.ctrl)[world], float)

    def is_held(self, world: int) -> bool:
        """Whether `hold` has set the controls of a world."""
        return world in self._held

    def hold(self, world: int, values: np.ndarray | None) -> None:
        """Set the controls of a world and hold them, through resets too. None sets them back to those at first."""
        if values is None:
            self._held.pop(world, None)
        else:
            self._held[world] = np.array(values, float)
        self.sim.set_state([world], ctrl=self._held.get(world, self._initial_ctrl))
        self._evaluated = False

    def push(self, world: int, body: int, force: np.ndarray) -> None:
        """Apply a force (3,) [N] to the centre of mass of a body, world frame, in place of the force there before."""
        applied = np.array(to_host(self.sim.field("xfrc_applied"))[world])
        applied[body, :3] = force
        self.sim.set_state([world], xfrc_applied=applied)
        self._evaluated = False
