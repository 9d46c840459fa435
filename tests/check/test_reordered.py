"""MuJoCo with its contacts in another order: the same optimum, and other forces where sweeps stop early."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine.check.oracle import Oracle, collect
from simengine.check.reordered import forward_in_order, step_in_order
from simengine.check.states import Sampler, State

STEPPED = ("qpos", "qvel")


def boxes(option: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(f"""
<mujoco><option {option} tolerance="0" ls_tolerance="1e-14"/><worldbody><geom type="plane" size="5 5 1"/>
<body pos="0 0 0.098" euler="2 3 40"><freejoint/><geom type="box" size="0.3 0.2 0.1"/>
<body pos="0 0 0.2" euler="1 0 0"><joint axis="0 0 1"/><geom type="box" size="0.1 0.1 0.101" condim="6"/></body>
</body></worldbody></mujoco>""")


def pressed(mj: mujoco.MjModel) -> State:
    """The lower box has four contacts with the plane, and slides."""
    rest = Sampler(mj, 0).random()
    qpos = np.array([0, 0, 0.08, 1, 0.01, 0.02, 0.3, 0.1])
    return rest._replace(qpos=qpos, qvel=np.linspace(1, -1, mj.nv), xfrc_applied=0 * rest.xfrc_applied)


def of(state: State) -> dict[str, np.ndarray]:
    return {**state._asdict(), "qacc_warmstart": np.zeros(len(state.qvel))}


@pytest.mark.parametrize("option", ['solver="PGS" iterations="3"', 'noslip_iterations="2"', 'solver="Newton"'])
@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_the_order_that_mujoco_has_changes_nothing(option: str, cone: str) -> None:
    oracle = Oracle(boxes(f'{option} cone="{cone}"'))
    state = pressed(oracle.mj)
    oracle.forward(state)
    own = collect(oracle.mj, oracle.data)
    assert oracle.data.ncon == 4
    for name, values in forward_in_order(oracle, state, np.arange(4)).items():
        np.testing.assert_array_equal(values, own[name], err_msg=name)


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "implicit"])
def test_a_step_in_the_order_that_mujoco_has_is_its_own_step(integrator: str) -> None:
    oracle = Oracle(boxes(f'solver="PGS" iterations="3" integrator="{integrator}"'))
    before = {name: v for name, v in of(pressed(oracle.mj)).items() if name != "kind"}
    data = step_in_order(oracle, before, np.arange(4))
    assert data is not None
    stepped = [np.array(getattr(data, name)) for name in STEPPED]
    mujoco.mj_resetData(oracle.mj, data)
    for name, values in before.items():
        getattr(data, name)[:] = values
    mujoco.mj_step(oracle.mj, data)
    for name, values in zip(STEPPED, stepped, strict=True):
        np.testing.assert_array_equal(values, getattr(data, name), err_msg=name)


def test_contacts_that_runge_kutta_finds_have_no_order() -> None:
    oracle = Oracle(boxes('integrator="RK4"'))
    before = {name: v for name, v in of(pressed(oracle.mj)).items() if name != "kind"}
    assert step_in_order(oracle, before, np.arange(4)) is None


@pytest.mark.parametrize("option", ['solver="PGS" iterations="3"', 'solver="PGS" noslip_iterations="2"'])
def test_forces_of_few_sweeps_depend_on_the_order_and_those_of_the_optimum_do_not(option: str) -> None:
    order, differences = np.array([3, 1, 0, 2]), []
    for how in (option, 'solver="Newton"'):
        oracle = Oracle(boxes(f'{how} cone="elliptic"'))
        state = pressed(oracle.mj)
        oracle.forward(state)
        own = collect(oracle.mj, oracle.data)
        other = forward_in_order(oracle, state, order)
        np.testing.assert_array_equal(other["contact_pos"], own["contact_pos"][order])
        assert other["contact_efc_address"].tolist() == own["contact_efc_address"].tolist()
        differences.append(np.abs(other["qacc"] - own["qacc"]).max() / np.abs(own["qacc"]).max())
    assert differences[0] > 1e-7
    assert differences[1] < 1e-10
