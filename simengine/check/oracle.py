"""MuJoCo as the reference: what it computes from a state, and whether rounding can decide which contacts exist."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from copy import copy
from typing import NamedTuple

import mujoco
import numpy as np

from simengine.check.chosen import Chosen, find_contacts
from simengine.check.fields import FORWARD
from simengine.check.gaps import with_whole_gaps
from simengine.check.itself import with_own_depths
from simengine.check.order import marks
from simengine.check.runge_kutta import RungeKutta
from simengine.check.segments import undecided_segments
from simengine.check.softened import soften
from simengine.check.states import STATE_ARRAYS, State
from simengine.check.touch import undecided_touch
from simengine.model.rows import with_least_weights

NEAR = 1e-6
"""Contacts and limits closer than this to their margin [m, rad] may exist in one precision and not in another."""

_LIMITS = (mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT, mujoco.mjtConstraint.mjCNSTR_LIMIT_TENDON)
_STEP_INPUTS = (*STATE_ARRAYS, "qacc_warmstart")
_AFTER_THE_FIRST = 3  # evaluations of a step of Runge-Kutta


class Touched(NamedTuple):
    """The contacts and limits of a state.

    Attributes:
        ncon, nefc: contacts and constraint rows.
        pairs: contacts that exert a force, by pair type such as "plane-capsule".
        limits: active joint limits as (joint, side); side 0 is the lower (or a ball joint's only) limit, 1 the upper.
        limit_rows: number of rows of limits.
    """

    ncon: int
    nefc: int
    pairs: Counter[str]
    limits: frozenset[tuple[int, int]]
    limit_rows: int


class Evaluation(NamedTuple):
    """One state, and MuJoCo's results for it.

    Attributes:
        state: the state.
        fields: MuJoCo's values, float64, by the names of `FORWARD`; nan for sensor readings that rounding decides.
        touched: its contacts and limits.
    """

    state: State
    fields: dict[str, np.ndarray]
    touched: Touched


def pair_type(mj: mujoco.MjModel, geom1: int, geom2: int) -> str:
    """The types of two geoms, the lower one first, such as "plane-capsule"."""
    types = sorted((int(mj.geom_type[geom1]), int(mj.geom_type[geom2])))
    return "-".join(mujoco.mjtGeom(t).name.removeprefix("mjGEOM_").lower() for t in types)


def dense_jacobian(mj: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """efc_J as a dense matrix (nefc, nv), in whichever form MuJoCo stores it."""
    if not mujoco.mj_isSparse(mj):
        return np.array(data.efc_J[: data.nefc * mj.nv]).reshape(data.nefc, mj.nv)
    dense = np.zeros((data.nefc, mj.nv))
    for row in range(data.nefc):
        entries = slice(data.efc_J_rowadr[row], data.efc_J_rowadr[row] + data.efc_J_rownnz[row])
        dense[row, data.efc_J_colind[entries]] = data.efc_J[entries]
    return dense


class Oracle:
    """MuJoCo on one model.

    Args:
        mj: the model.
        dtype: precision that is compared with it.

    Attributes:
        mj: the model, in float32 with the least inverse inertia of bodies that only turn. It skips no contact in a gap.
        data: working data, which holds the latest state that was evaluated or stepped.
        by_rounding: how many states were undecided although no contact or limit was near its margin.
    """

    def __init__(self, mj: mujoco.MjModel, dtype: str = "float64"):
        mj = with_whole_gaps(with_least_weights(mj) if dtype == "float32" else mj)
        self.mj = mj
        self.data = mujoco.MjData(mj)
        self.by_rounding = 0
        self._dtype = dtype
        self._ahead = mujoco.MjData(mj)
        self._chosen = Chosen(mj, dtype)
        self._shifted = [(model, mujoco.MjData(model)) for model in (with_margins(mj, NEAR), with_margins(mj, -NEAR))]

    def forward(self, state: State) -> None:
        """Evaluate the dynamics at a state without warm start, including forces and momenta of bodies."""
        state.put_into(self.mj, self.data)
        mujoco.mj_forward(self.mj, self.data)
        self.complete()

    def complete(self) -> None:
        """Compute forces and momenta of bodies, and energies, after `mj_forward` on `data`."""
        mujoco.mj_rnePostConstraint(self.mj, self.data)
        mujoco.mj_subtreeVel(self.mj, self.data)
        mujoco.mj_energyPos(self.mj, self.data)
        mujoco.mj_energyVel(self.mj, self.data)

    def contacts(self, before: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Geom pairs (ncon, 2) and `marks` (ncon, 7) of the contacts in a state, given by MuJoCo's names."""
        mujoco.mj_resetData(self.mj, self.data)
        for name, values in before.items():
            getattr(self.data, name)[:] = values
        find_contacts(self.mj, self.data)
        contact = self.data.contact
        return np.array(contact.geom), marks(contact.dist, contact.pos, contact.frame)

    def evaluate(self, state: State) -> Evaluation | None:
        """The fields and contacts of a state; None if a contact or limit is within NEAR of its margin, or if rounding
        decides contacts."""
        state.put_into(self.mj, self.data)
        if not self.is_decided(state.qpos):
            return None
        self.forward(state)
        return Evaluation(state, self.fields(), self.touched())

    def fields(self) -> dict[str, np.ndarray]:
        """Those of `collect` of what is in `data`, with rows as they are in this precision."""
        fields = collect(self.mj, self.data)
        if self._dtype == "float32":
            soften(self.mj, self.data, fields)
        return fields

    def is_decided(self, qpos: np.ndarray) -> bool:
        """Whether the same contacts and rows exist with all margins NEAR wider and NEAR narrower, and rounding decides
        none of them.

        Mocap bodies have their poses in `data`.
        """
        lists = []
        for model, data in self._shifted:
            data.qpos[:] = qpos
            data.mocap_pos[:], data.mocap_quat[:] = self.data.mocap_pos, self.data.mocap_quat
            find_contacts(model, data)
            mujoco.mj_makeConstraint(model, data)
            contact = data.contact
            arrays = (contact.geom, contact.exclude, data.efc_type, data.efc_id)
            lists.append([np.asarray(array).tobytes() for array in arrays])
        if lists[0] != lists[1]:
            return False
        decided = self._chosen.are_decided(model, data)
        self.by_rounding += not decided
        return decided

    def chooses(self, state: State) -> bool:
        """Whether rounding in this precision decides no contact of a state that was decided in a finer one."""
        model, data = self._shifted[-1]
        data.qpos[:], data.mocap_pos[:], data.mocap_quat[:] = state.qpos, state.mocap_pos, state.mocap_quat
        find_contacts(model, data)
        return self._chosen.are_decided(model, data)

    def is_clear(self, before: Mapping[str, np.ndarray]) -> bool:
        """Whether it is certain which corners of meshes touch in a state, given by MuJoCo's names."""
        self.contacts(before)
        return self._chosen.are_clear(self.data)

    def touched(self) -> Touched:
        """The contacts and limits of the state in `data`."""
        mj, data = self.mj, self.data
        acting = np.flatnonzero(np.asarray(data.contact.exclude) == 0)
        pairs = Counter(pair_type(mj, *data.contact.geom[i]) for i in acting)
        limit_rows = np.flatnonzero(np.isin(data.efc_type, _LIMITS))
        jacobian = dense_jacobian(mj, data)
        sides = set()
        for row in limit_rows:
            joint = int(data.efc_id[row])
            if data.efc_type[row] == mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT:
                scalar = mj.jnt_type[joint] != mujoco.mjtJoint.mjJNT_BALL
                sides.add((joint, int(scalar and jacobian[row, mj.jnt_dofadr[joint]] < 0)))
        return Touched(data.ncon, data.nefc, pairs, frozenset(sides), len(limit_rows))

    def step_is_decided(self) -> bool:
        """Whether `is_decided` holds at every point at which a step from the state in `data` evaluates the dynamics."""
        return all(self.is_decided(qpos) for qpos in self._points())

    def _points(self) -> Iterator[np.ndarray]:
        """Coordinates at which a step from the state in `data` evaluates the dynamics."""
        mj, data = self.mj, self._ahead
        for name in _STEP_INPUTS:
            getattr(data, name)[:] = getattr(self.data, name)
        yield data.qpos
        if mj.opt.integrator != mujoco.mjtIntegrator.mjINT_RK4:
            return
        step = RungeKutta(mj, data.qpos, data.qvel, data.act)
        for _ in range(_AFTER_THE_FIRST):
            mujoco.mj_forward(mj, data)
            step.advance(data.qacc, data.act_dot)
            data.qpos[:], data.qvel[:], data.act[:] = step.qpos, step.qvel, step.act
            yield data.qpos


def with_margins(mj: mujoco.MjModel, change: float) -> mujoco.MjModel:
    """A copy in which the margins of contacts and limits are larger by `change` [m, rad]."""
    model = copy(mj)
    # The margins of two geoms are summed; those of limits and explicit pairs are used alone.
    model.geom_margin[:] += change / 2
    model.body_margin[:] += change / 2  # the largest of a body's geoms, by which MuJoCo skips pairs of bodies
    for margin in (model.pair_margin, model.jnt_margin, model.tendon_margin):
        margin[:] += change
    model.opt.o_margin += change
    return model


def collect(mj: mujoco.MjModel, data: mujoco.MjData) -> dict[str, np.ndarray]:
    """`fields_of`, and the contacts' first rows; nan for sensor readings that rounding decides.

    The depth of a geom in itself is exact, or nan.
    """
    fields = {"contact_efc_address": np.array(data.contact.efc_address), **fields_of(mj, data)}
    fields["sensordata"] = with_own_depths(mj, data)
    fields["sensordata"][undecided_touch(mj, data)] = np.nan
    fields["sensordata"][undecided_segments(mj, data)] = np.nan
    return fields


def fields_of(mj: mujoco.MjModel, data: mujoco.MjData) -> dict[str, np.ndarray]:
    """Copies of MuJoCo's fields by the names of `FORWARD`, with dense matrices."""
    fields = {}
    for field in FORWARD:
        if field.name.startswith("contact_"):
            fields[field.name] = np.array(getattr(data.contact, field.name.removeprefix("contact_")))
        elif field.name == "qM":
            fields["qM"] = np.zeros((mj.nv, mj.nv))
            mujoco.mj_fullM(mj, data, fields["qM"])
        elif field.name == "ten_J":
            rows = (data.ten_J, mj.ten_J_rownnz, mj.ten_J_rowadr, mj.ten_J_colind)
            fields["ten_J"] = _dense(mj.ntendon, mj.nv, *rows)
        elif field.name == "actuator_moment":
            rows = (data.actuator_moment, data.moment_rownnz, data.moment_rowadr, data.moment_colind)
            fields["actuator_moment"] = _dense(mj.nu, mj.nv, *rows)
        elif field.name == "efc_J":
            fields["efc_J"] = dense_jacobian(mj, data)
        else:
            fields[field.name] = np.array(getattr(data, field.name))
    return fields


def _dense(n: int, nv: int, *rows: np.ndarray) -> np.ndarray:
    """A matrix (n, nv) from MuJoCo's sparse rows: values, their number per row, first value of each row, columns."""
    out = np.zeros((n, nv))
    if n and nv:
        mujoco.mju_sparse2dense(out, *(array.ravel() for array in rows))
    return out
