"""MuJoCo's results with its contacts in another order.

Sweeps that stop before they converge, those of PGS and those that remove slip, give other forces for another order of
the rows. Within a pair of geoms, rounding may decide the order of the contacts. So where the engine has another order
than MuJoCo, it is compared with what MuJoCo makes of that order.
"""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np

from simengine.check.oracle import Oracle
from simengine.check.states import State

_OF_CONTACT = (
    *("dist", "pos", "frame", "includemargin", "friction", "solref", "solreffriction", "solimp", "mu", "H", "dim"),
    *("geom1", "geom2", "geom", "flex", "elem", "vert", "exclude", "efc_address"),
)
_RK4, _EULER = mujoco.mjtIntegrator.mjINT_RK4, mujoco.mjtIntegrator.mjINT_EULER


def forward_in_order(
    oracle: Oracle, state: State, order: np.ndarray, given: Mapping[str, np.ndarray] | None = None
) -> dict[str, np.ndarray]:
    """MuJoCo's fields in a state, by the names of `FORWARD`, with contacts in another order.

    Args:
        oracle: MuJoCo on the model; its data is changed.
        state: the state.
        order: (ncon,) MuJoCo's own index of each contact.
        given: fields of the contacts in that order, such as "pos", which take the place of MuJoCo's own.
    """
    oracle.forward(state)
    _solve_again(oracle.mj, oracle.data, order, np.zeros(oracle.mj.nv), given or {})
    oracle.complete()
    return oracle.fields()


def step_in_order(
    oracle: Oracle,
    before: Mapping[str, np.ndarray],
    order: np.ndarray,
    given: Mapping[str, np.ndarray] | None = None,
) -> mujoco.MjData | None:
    """MuJoCo's data after a step with contacts in another order; None if its integrator finds contacts several times.

    Args:
        oracle: MuJoCo on the model; its data is changed and returned.
        before: the state before the step, by MuJoCo's names, with `qacc_warmstart`.
        order: (ncon,) MuJoCo's own index of each contact.
        given: as for `forward_in_order`.
    """
    mj, data = oracle.mj, oracle.data
    if mj.opt.integrator == _RK4:
        return None
    mujoco.mj_resetData(mj, data)
    for name, values in before.items():
        getattr(data, name)[:] = values
    mujoco.mj_forward(mj, data)
    _solve_again(mj, data, order, before["qacc_warmstart"], given or {})
    (mujoco.mj_Euler if mj.opt.integrator == _EULER else mujoco.mj_implicit)(mj, data)
    return data


def put_in_order(data: mujoco.MjData, order: np.ndarray, given: Mapping[str, np.ndarray]) -> None:
    """Give the contacts in `data` another order, of indices (ncon,), before rows are made of them.

    `given` has fields of the contacts in that order, such as "pos", which take the place of MuJoCo's own.
    """
    for name in _OF_CONTACT:
        values = getattr(data.contact, name)
        values[:] = given[name].reshape(values.shape) if name in given else np.array(values)[order]


def _solve_again(
    mj: mujoco.MjModel, data: mujoco.MjData, order: np.ndarray, warmstart: np.ndarray, given: Mapping[str, np.ndarray]
) -> None:
    """Reorder the contacts in `data`, which was evaluated, and evaluate what depends on their order."""
    put_in_order(data, order, given)
    data.qacc_warmstart[:] = warmstart
    mujoco.mj_makeConstraint(mj, data)
    mujoco.mj_island(mj, data)
    mujoco.mj_projectConstraint(mj, data)
    mujoco.mj_forwardSkip(mj, data, mujoco.mjtStage.mjSTAGE_POS, 0)
