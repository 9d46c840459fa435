"""Models and states of the GPU tests, and MuJoCo's fields of each state.

States are exact in float32. A state is left out if a contact or limit lies within NEAR of its margin, because this
contact or limit may then exist in one precision only.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import NamedTuple

import mujoco
import numpy as np

from simengine.check.states import in_float32
from simengine.model import ModelTable, load_table
from tests.helpers.oracle import PAIR_NAMES, Sample, collect, on_a_margin, oracle_model, place, sample

LINKS, BODIES = 14, 4
"""Numbers of the heap's hinges, in a chain that hangs on a slide, and of its free bodies."""

NAMES = (
    *("ant", "half_cheetah", "hopper", "walker2d"),
    *("mixed_tree", "pile", "contact_parameters", "two_arms", "parallel_capsules", "sunken", "tendons", "dual", "heap"),
    "crates",
)
"""Models of 5 to 39 dofs, so that worlds with 8, 16 and 32 lanes occur, and matrices with more rows than lanes."""


class Case(NamedTuple):
    """A model with n sampled states.

    Attributes:
        mj, model: the model for MuJoCo and for the engine, with a solver tolerance of 1e-12.
        states: state fields, (n, ...).
        fields: MuJoCo's fields of each state, including forces and momenta of bodies, by the engine's names.
        left_out: number of states that were left out because they lie on a margin.
    """

    mj: mujoco.MjModel
    model: ModelTable
    states: dict[str, np.ndarray]
    fields: list[dict[str, np.ndarray]]
    left_out: int


def heap_xml() -> str:
    """A chain of limited, actuated hinges among free spheres and capsules, nv = 1 + LINKS + 6 BODIES = 39."""
    lift = '<joint name="lift" type="slide" axis="0 0 1" damping="1"/>'
    links = "".join(
        f'<body pos="{0.25 if k else 0} 0 {0 if k else 0.035}">{"" if k else lift}'
        f'<joint name="j{k}" type="hinge" axis="0 {k % 2} {1 - k % 2}" range="-70 80" damping="0.1" armature="0.01"/>'
        f'<geom type="capsule" fromto="0.05 0 0 0.2 0 0" size="0.04" condim="{1 if k == 3 else 3}"/>'
        for k in range(LINKS)
    )
    shapes = ('type="sphere" size="0.1"', 'type="capsule" size="0.06 0.12" friction="0.6"')
    bodies = "".join(
        f'<body pos="{0.3 * k} 0.1 0.2"><freejoint/><geom {shapes[k % 2]} margin="0.01" gap="0.01"/></body>'
        for k in range(BODIES)
    )
    motors = "".join(f'<position joint="j{k}" kp="2"/>' for k in range(LINKS))
    return (
        '<mujoco model="heap"><option timestep="0.002"/><default><geom density="500"/></default><worldbody>'
        f'<geom type="plane" size="5 5 1"/>{links}{"</body>" * LINKS}{bodies}'
        f"</worldbody><actuator>{motors}</actuator></mujoco>"
    )


def _heap_sample(mj: mujoco.MjModel, n: int) -> Sample:
    """Random poses of the chain, with free bodies in heaps and in the air. In every tenth state nothing touches."""
    rng = np.random.default_rng(4)
    qpos = np.tile(mj.qpos0, (n, 1))
    low, high = mj.jnt_range[1 : 1 + LINKS].T
    qpos[:, 0] = rng.choice([0, 0.01, 0.6], size=n) + rng.uniform(0, 0.002, size=n)
    qpos[:, 1 : 1 + LINKS] = rng.uniform(low, high, size=(n, LINKS)) * rng.choice([0.02, 0.3, 1.05], size=(n, 1))
    for k in range(BODIES):
        at = 1 + LINKS + 7 * k
        qpos[:, at : at + 3] += rng.normal(size=(n, 3)) * 0.1
        qpos[:, at + 2] = rng.uniform(0.03, 0.06, size=n) + rng.choice([0, 0.4], size=n)
        qpos[:, at + 3 : at + 7] = rng.normal(size=(n, 4))
    qpos[::10, 0] = 0.6
    qpos[::10, 1 : 1 + LINKS] *= 0.02
    qpos[::10, 1 + LINKS + 2 :: 7] = 0.9 + 0.4 * np.arange(BODIES)
    values = {
        "qpos": qpos,
        "qvel": rng.normal(size=(n, mj.nv)),
        "ctrl": rng.uniform(-1.2, 1.2, size=(n, mj.nu)),
        "qfrc_applied": rng.normal(size=(n, mj.nv)),
        "xfrc_applied": rng.normal(size=(n, mj.nbody, 6)),
    }
    data = mujoco.MjData(mj)
    for name in Sample._fields:
        values.setdefault(name, np.broadcast_to(getattr(data, name), (n, *getattr(data, name).shape)))
    return Sample(**{name: in_float32(v) for name, v in values.items()})


def _placed(mj: mujoco.MjModel, states: Sample, index: int) -> mujoco.MjData:
    data = mujoco.MjData(mj)
    place(states, index, data)
    return data


@cache
def loaded(name: str) -> tuple[mujoco.MjModel, ModelTable]:
    """A model of NAMES with the solver's tolerance at 1e-12, for MuJoCo and for the engine."""
    if name != "heap":
        return oracle_model(name)
    mj = mujoco.MjModel.from_xml_string(heap_xml())
    mj.opt.tolerance = mj.opt.ls_tolerance = 1e-12
    return mj, load_table(mj)


@cache
def case(name: str) -> Case:
    """A model of NAMES with its states that do not lie on a margin."""
    mj, model = loaded(name)
    states = _heap_sample(mj, 110) if name == "heap" else sample(name)
    undecided = on_a_margin(mj, states)
    keep = np.flatnonzero(~undecided)
    fields = []
    for i in keep.tolist():
        data = _placed(mj, states, i)
        mujoco.mj_forward(mj, data)
        mujoco.mj_rnePostConstraint(mj, data)
        mujoco.mj_subtreeVel(mj, data)
        fields.append(collect(mj, data) | {"contact_geom": data.contact.geom.reshape(-1, 2).copy()})
    return Case(mj, model, {k: v[keep] for k, v in states._asdict().items()}, fields, int(undecided.sum()))


def coverage(name: str) -> Counter[str]:
    """How many limits, contacts by pair type and in the gap, states without rows and states left out there are."""
    count: Counter[str] = Counter(states=len(case(name).fields), left_out=case(name).left_out)
    for fields in case(name).fields:
        count["limits"] += int((fields["efc_type"] == mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT).sum())
        count["in gap"] += int((fields["contact_exclude"] == 1).sum())
        count["free states"] += len(fields["efc_type"]) == 0
        count["most rows"] = max(count["most rows"], len(fields["efc_type"]))
        for pair in fields["contact_type"]:
            count[PAIR_NAMES[int(pair[0]), int(pair[1])]] += 1
    return count
