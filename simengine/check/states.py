"""States for the comparison: random ones, ones in which MuJoCo let the model fall, and ones in which geoms are thrown.

Every number is exact in float32, so that each precision starts from the same state.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import mujoco
import numpy as np

_JOINT = mujoco.mjtJoint
_FALL = 1.5  # duration of a drop [s]
_MOST_STEPS = 600  # most steps of a drop
_SPEED = 1e3  # [m/s, rad/s]; faster states come from a simulation that diverged
_FASTEST = 50.0  # [m/s, rad/s] most that a throw adds to any dof
_BLOWN_UP = tuple(getattr(mujoco.mjtWarning, f"mjWARN_BAD{name}") for name in ("QPOS", "QVEL", "QACC"))
_WALK = 12  # most moves towards a contact
_SWITCHED = 0.2  # fraction of equality constraints that differ from their initial state
_FAR = 1e3  # [m], beyond which distances do not matter


class State(NamedTuple):
    """One state with controls and applied forces.

    Attributes:
        kind: "random", "settled", "thrown" or "limit": how the state was made.
        qpos: (nq,) [m, rad, quaternions].
        qvel: (nv,) [m/s, rad/s].
        act: (na,).
        ctrl: (nu,).
        qfrc_applied: (nv,) [N, N m].
        xfrc_applied: (nbody, 6), force then torque at the body's centre of mass, world frame [N, N m].
        mocap_pos, mocap_quat: (nmocap, 3) [m], (nmocap, 4).
        eq_active: (neq,) 1 if an equality constraint is active, else 0.
    """

    kind: str
    qpos: np.ndarray
    qvel: np.ndarray
    act: np.ndarray
    ctrl: np.ndarray
    qfrc_applied: np.ndarray
    xfrc_applied: np.ndarray
    mocap_pos: np.ndarray
    mocap_quat: np.ndarray
    eq_active: np.ndarray

    def put_into(self, mj: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Write the state into MuJoCo's data and reset everything else."""
        mujoco.mj_resetData(mj, data)
        for name in STATE_ARRAYS:
            getattr(data, name)[:] = getattr(self, name)


STATE_ARRAYS: tuple[str, ...] = State._fields[1:]


def in_float32(array: np.ndarray) -> np.ndarray:
    """The nearest values that float32 can hold, in float64."""
    return np.asarray(array).astype(np.float32).astype(np.float64)


class Sampler:
    """Draws states of a model.

    Args:
        mj: the model.
        seed: equal seeds give equal states.
    """

    def __init__(self, mj: mujoco.MjModel, seed: int):
        self.mj = mj
        self.rng = np.random.default_rng(seed)
        self._data = mujoco.MjData(mj)

    def random(self) -> State:
        """Joints within or slightly beyond their range, random velocities, controls and applied forces."""
        mj, rng = self.mj, self.rng
        forces = rng.normal(size=mj.nv), rng.normal(size=(mj.nbody, 6))
        moving = self.random_qpos(), rng.normal(size=mj.nv), self.random_act(), self.random_ctrl()
        return _state("random", *moving, *forces, *self.random_mocap(), self.random_active())

    def settled(self, count: int) -> Iterator[State]:
        """`count` states of one drop: MuJoCo steps from a random state at rest under constant controls."""
        mj, data = self.mj, self._data
        steps = int(np.clip(_FALL / max(mj.opt.timestep, mujoco.mjMINVAL), count, _MOST_STEPS))
        moments = sorted(self.rng.choice(steps, size=count, replace=False).tolist())
        mujoco.mj_resetData(mj, data)
        data.qpos[:], data.ctrl[:] = self.random_qpos(), self.random_ctrl()
        data.mocap_pos[:], data.mocap_quat[:] = self.random_mocap()
        data.eq_active[:] = self.random_active()
        for first, last in itertools.pairwise((-1, *moments)):
            mujoco.mj_step(mj, data, nstep=last - first)
            if not is_sane(data):
                return
            yield _state("settled", *(np.array(getattr(data, name)) for name in STATE_ARRAYS))

    def thrown(self, geom1: int, geom2: int) -> State:
        """A random state moved until two geoms touch, or as close as possible, with a velocity that closes the gap."""
        state = self.random()
        self._data.mocap_pos[:], self._data.mocap_quat[:] = state.mocap_pos, state.mocap_quat
        closing = self._walk(state.qpos, geom1, geom2)
        norm = float(closing @ closing)
        if norm > mujoco.mjMINVAL:
            added = closing / norm * self.rng.uniform(0.1, 2.0)
            state.qvel[:] -= added * min(1.0, _FASTEST / np.abs(added).max())  # no joint velocity may close the gap
        return _state("thrown", *state[1:])

    def beyond(self, joint: int, side: int) -> State:
        """A random state with one joint beyond its lower (side 0) or upper (side 1) limit."""
        mj, state = self.mj, self.random()
        adr, (low, high) = mj.jnt_qposadr[joint], mj.jnt_range[joint]
        past = self.rng.uniform(0.01, 0.1)
        if mj.jnt_type[joint] == _JOINT.mjJNT_BALL:
            axis = self.rng.normal(size=3)
            mujoco.mju_axisAngle2Quat(state.qpos[adr : adr + 4], axis / np.linalg.norm(axis), high + past)
        else:
            past *= min(1.0, high - low)
            state.qpos[adr] = high + past if side else low - past
        return _state("limit", *state[1:])

    def random_ctrl(self) -> np.ndarray:
        """Controls within or slightly beyond their range, or from -1 to 1 without a range, (nu,)."""
        mj = self.mj
        limited = np.asarray(mj.actuator_ctrllimited, dtype=bool)[:, None]
        low, high = np.where(limited, mj.actuator_ctrlrange, (-1.0, 1.0)).T
        beyond = 0.1 * (high - low)
        return in_float32(self.rng.uniform(low - beyond, high + beyond))

    def random_act(self) -> np.ndarray:
        """Activations within or slightly beyond their range, or from 0 to 1 without a range, (na,)."""
        mj = self.mj
        owner = np.flatnonzero(mj.actuator_actadr >= 0)
        limited = np.asarray(mj.actuator_actlimited[owner], dtype=bool)[:, None]
        low, high = np.where(limited, mj.actuator_actrange[owner], (0.0, 1.0)).T
        beyond = 0.1 * (high - low)
        return in_float32(self.rng.uniform(low - beyond, high + beyond))

    def random_mocap(self) -> tuple[np.ndarray, np.ndarray]:
        """Poses of mocap bodies near their initial positions, with random orientations, (nmocap, 3), (nmocap, 4)."""
        mj = self.mj
        body = np.argsort(mj.body_mocapid)[mj.nbody - mj.nmocap :]
        pos = mj.body_pos[body] + self.rng.normal(size=(mj.nmocap, 3)) * 0.1
        return in_float32(pos), in_float32(self.rng.normal(size=(mj.nmocap, 4)))  # any length is allowed

    def random_active(self) -> np.ndarray:
        """Which equality constraints are active, (neq,): mostly those that are initially."""
        start = np.asarray(self.mj.eq_active0, dtype=np.float64)
        return np.where(self.rng.random(self.mj.neq) < _SWITCHED, 1.0 - start, start)

    def random_qpos(self) -> np.ndarray:
        """Coordinates with every joint drawn at random, (nq,)."""
        mj, rng, qpos = self.mj, self.rng, self.mj.qpos0.copy()
        for joint in range(mj.njnt):
            adr, kind = mj.jnt_qposadr[joint], mj.jnt_type[joint]
            low, high = mj.jnt_range[joint]
            if kind == _JOINT.mjJNT_FREE:
                qpos[adr : adr + 3] += rng.normal(size=3) * 0.1
                qpos[adr + 3 : adr + 7] = rng.normal(size=4)  # the length need not be 1
            elif kind == _JOINT.mjJNT_BALL:
                qpos[adr : adr + 4] = rng.normal(size=4)
            elif mj.jnt_limited[joint]:
                beyond = 0.05 * min(1.0, high - low)
                qpos[adr] = rng.uniform(low - beyond, high + beyond)
            else:
                qpos[adr] += rng.normal() * (0.8 if kind == _JOINT.mjJNT_HINGE else 0.1)
        return in_float32(qpos)

    def initial_qpos(self) -> np.ndarray:
        """The model's initial coordinates, slightly changed because joints often start exactly at a limit, (nq,)."""
        qpos = self.mj.qpos0.copy()
        mujoco.mj_integratePos(self.mj, qpos, self.rng.normal(size=self.mj.nv), 0.01)
        return in_float32(qpos)

    def _walk(self, qpos: np.ndarray, geom1: int, geom2: int) -> np.ndarray:
        """Move `qpos` in place towards a contact of two geoms, by Newton's method on their distance.

        Returns:
            the gradient of the distance with respect to the dofs, (nv,).
        """
        mj, data = self.mj, self._data
        segment, gradient = np.zeros(6), np.zeros(mj.nv)
        wanted = -self.rng.uniform(0.0, 0.2) * _radius(mj, geom1, geom2)
        for _ in range(_WALK):
            data.qpos[:] = qpos
            mujoco.mj_kinematics(mj, data)
            mujoco.mj_comPos(mj, data)
            distance = mujoco.mj_geomDistance(mj, data, geom1, geom2, _FAR, segment)
            if distance >= _FAR or abs(distance) < mujoco.mjMINVAL:
                break
            gradient = self._gradient(geom1, geom2, segment, distance)
            norm = float(gradient @ gradient)
            excess = distance - wanted
            if norm < mujoco.mjMINVAL or abs(excess) < 0.1 * abs(wanted):
                break
            move = np.clip(-excess / norm * gradient, -_longest(mj), _longest(mj))
            mujoco.mj_integratePos(mj, qpos, move, 1.0)
            self._into_range(qpos)
        return gradient

    def _gradient(self, geom1: int, geom2: int, segment: np.ndarray, distance: float) -> np.ndarray:
        """Gradient of the distance between the ends of a segment, each of which is fixed to one geom's body, (nv,)."""
        mj, data = self.mj, self._data
        jac1, jac2 = np.zeros((3, mj.nv)), np.zeros((3, mj.nv))
        mujoco.mj_jac(mj, data, jac1, None, segment[:3], mj.geom_bodyid[geom1])
        mujoco.mj_jac(mj, data, jac2, None, segment[3:], mj.geom_bodyid[geom2])
        return (segment[3:] - segment[:3]) / distance @ (jac2 - jac1)

    def _into_range(self, qpos: np.ndarray) -> None:
        mj = self.mj
        scalar = (mj.jnt_type == _JOINT.mjJNT_HINGE) | (mj.jnt_type == _JOINT.mjJNT_SLIDE)
        limited = np.flatnonzero(scalar & (mj.jnt_limited != 0))
        adr = mj.jnt_qposadr[limited]
        low, high = mj.jnt_range[limited].T
        inset = self.rng.uniform(-0.02, 0.02) * np.minimum(1.0, high - low)  # so that no joint is exactly at its limit
        qpos[adr] = np.clip(qpos[adr], low + inset, high - inset)


def is_sane(data: mujoco.MjData) -> bool:
    """Whether a simulated state is one to go on from, and not faster than _SPEED: the simulation has not diverged.

    Beyond mjMAXVAL, the engine stops at once, and MuJoCo resets the state when its next step begins.
    """
    within = np.abs(data.qpos).max(initial=0) < mujoco.mjMAXVAL  # NaN is not
    reset = any(data.warning[kind].number for kind in _BLOWN_UP)  # MuJoCo resets such a state itself
    return bool(within and not reset and np.abs(data.qvel).max(initial=0) < _SPEED)


def _state(kind: str, *arrays: np.ndarray) -> State:
    return State(kind, *(in_float32(array) for array in arrays))


def _radius(mj: mujoco.MjModel, geom1: int, geom2: int) -> float:
    """The smallest positive size of two geoms, planes excepted [m]."""
    sizes = [mj.geom_size[g][mj.geom_size[g] > 0] for g in (geom1, geom2) if mj.geom_rbound[g] > 0]
    return float(min((size.min() for size in sizes if size.size), default=0.01))


def _longest(mj: mujoco.MjModel) -> np.ndarray:
    """Longest move of each dof in one step, within which the gradient of a distance is valid, (nv,) [m, rad]."""
    kind = mj.jnt_type[mj.dof_jntid]
    number = np.arange(mj.nv) - mj.jnt_dofadr[mj.dof_jntid]  # index within the joint
    shifting = (kind == _JOINT.mjJNT_SLIDE) | ((kind == _JOINT.mjJNT_FREE) & (number < 3))
    return np.where(shifting, np.inf, 0.5)


def as_numpy(array: Any) -> np.ndarray:
    """Copy of any backend's array as a NumPy array."""
    return array.get() if hasattr(array, "get") else np.asarray(array)
