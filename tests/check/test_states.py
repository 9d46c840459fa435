"""The states of a check: what they cover, and which are left out because they lie too close to a margin."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import load_model
from simengine.check.oracle import NEAR, Oracle
from simengine.check.search import targets
from simengine.check.states import STATE_ARRAYS, Sampler, is_sane
from simengine.check.trajectory import follow
from tests.models import GYMNASIUM, OWN, compile_model

MARGINS = """
<mujoco>
  <option integrator="{integrator}"/>
  <worldbody>
    <geom type="plane" size="1 1 1" margin="0.01" gap="0.004"/>
    <body pos="0 0 0">
      <joint name="up" type="slide" axis="0 0 1" range="-1 0.5" limited="true" margin="0.02"/>
      <geom size="0.1"/>
    </body>
  </worldbody>
</mujoco>
"""


def decided(height: float, integrator: str = "Euler") -> bool:
    oracle = Oracle(mujoco.MjModel.from_xml_string(MARGINS.format(integrator=integrator)))
    return oracle.is_decided(np.array([height]))


@pytest.mark.parametrize("threshold", [0.11, 0.114, 0.48])
@pytest.mark.parametrize("side", [-1, 1])
def test_states_near_a_margin_a_gap_or_a_limit_are_undecided(threshold: float, side: int) -> None:
    assert not decided(threshold + 0.4 * side * NEAR)
    assert decided(threshold + 2.5 * side * NEAR)


def test_a_step_is_undecided_at_any_of_its_evaluations() -> None:
    for integrator, expected in (("Euler", True), ("RK4", False)):
        oracle = Oracle(mujoco.MjModel.from_xml_string(MARGINS.format(integrator=integrator)))
        # Half a step later, where only Runge-Kutta looks, the ball is at the gap's edge.
        oracle.data.qpos[:] = 0.2
        oracle.data.qvel[:] = (0.114 - 0.2) / (0.5 * oracle.mj.opt.timestep)
        before = oracle.data.qpos.copy(), oracle.data.qvel.copy()
        assert oracle.step_is_decided() is expected
        assert (oracle.data.qpos, oracle.data.qvel) == before


@pytest.mark.parametrize("name", ["ant", "hopper", "pile", "two_arms", "contact_parameters"])
def test_thrown_states_touch(name: str) -> None:
    model = load_model(compile_model(name))
    sampler, oracle = Sampler(model.mj, 1), Oracle(model.mj)
    for pair, geoms in targets(model).pairs.items():
        hits = 0
        for i in range(20):
            state = sampler.thrown(*geoms[i % len(geoms)].tolist())
            oracle.forward(state)
            hits += oracle.touched().pairs[pair] > 0
        assert hits >= 5, f"{pair}: {hits} of 20"


@pytest.mark.parametrize("name", [*GYMNASIUM, "mixed_tree"])
def test_every_limit_is_activated_on_purpose(name: str) -> None:
    model = load_model(compile_model(name))
    sampler, oracle = Sampler(model.mj, 2), Oracle(model.mj)
    wanted = targets(model).limits
    assert len(wanted) == 2 * model.table.nlimit > 0
    for limit in wanted:
        oracle.forward(sampler.beyond(*limit))
        assert limit in oracle.touched().limits


@pytest.mark.parametrize("name", ["ant", *OWN])
def test_states_are_exact_in_float32(name: str) -> None:
    mj = compile_model(name)
    sampler = Sampler(mj, 3)
    settled = [state for _ in range(5) for state in sampler.settled(4)]  # a drop ends where a model blows up
    states = [sampler.random(), *settled, sampler.thrown(0, mj.ngeom - 1)]
    assert settled or name == "tendons"  # whose motors drive it to speeds that end every drop
    assert {state.kind for state in states} >= {"random", "thrown"}
    for state in states:
        for field in STATE_ARRAYS:
            values = getattr(state, field)
            assert np.isfinite(values).all()
            np.testing.assert_array_equal(values, values.astype(np.float32))


def test_settled_states_of_a_pile_lie_on_each_other() -> None:
    mj = compile_model("pile")
    oracle = Oracle(mj)
    states = [state for _ in range(5) for state in Sampler(mj, 4).settled(6)]
    touched = []
    for state in states:
        oracle.forward(state)
        touched.append(oracle.touched().ncon)
    assert np.mean(touched) > 2


def test_a_trajectory_holds_what_mujoco_makes_of_each_state() -> None:
    oracle = Oracle(compile_model("hopper"))
    steps = follow(oracle, Sampler(oracle.mj, 5), 250)
    assert len(steps.touched) + steps.left_out == 250
    data = mujoco.MjData(oracle.mj)
    for i in (0, 100, len(steps.touched) - 1):
        for name, values in steps.before.items():
            np.testing.assert_array_equal(values[i], values[i].astype(np.float32))
            getattr(data, name)[:] = values[i]
        mujoco.mj_step(oracle.mj, data)
        np.testing.assert_allclose(data.qpos, steps.after["qpos"][i], rtol=0, atol=1e-12)
        np.testing.assert_allclose(data.qvel, steps.after["qvel"][i], rtol=0, atol=1e-9)


def test_far_bodies_are_thrown_together() -> None:
    text = (
        "<mujoco><worldbody><geom type='plane' size='1 1 1'/>"
        "<body pos='0 0 90'>{}<geom size='.01'/></body></worldbody></mujoco>"
    )
    for joint in ("<freejoint/>", "<joint type='slide' axis='0 0 1'/>"):
        mj = mujoco.MjModel.from_xml_string(text.format(joint))
        oracle = Oracle(mj)
        oracle.forward(Sampler(mj, 6).thrown(0, 1))
        assert oracle.touched().pairs == {"plane-sphere": 1}


def test_a_trajectory_leaves_a_margin_where_it_would_rest() -> None:
    mj = mujoco.MjModel.from_xml_string(
        "<mujoco><option gravity='0 0 0'/><worldbody><body><joint type='slide' range='0 .5' limited='true'/>"
        "<geom size='.1'/></body></worldbody></mujoco>"
    )
    oracle = Oracle(mj)
    assert not oracle.is_decided(mj.qpos0)
    steps = follow(oracle, Sampler(mj, 7), 200)
    assert len(steps.touched) > 150


def test_a_simulation_that_blew_up_is_not_sane(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # type: ignore[arg-type]  # where MuJoCo leaves its log
    mj = compile_model("ant")
    data = mujoco.MjData(mj)
    assert is_sane(data)
    data.qvel[3] = 1e5
    assert not is_sane(data)
    data.qvel[3] = np.nan
    mujoco.mj_step(mj, data)  # MuJoCo puts the state back to the start
    assert np.isfinite(data.qvel).all()
    assert not is_sane(data)


def test_a_throw_is_no_faster_than_joints_can_be() -> None:
    """A wheel that turns nearly about its own axis comes hardly nearer to the floor, however fast it turns."""
    mj = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 0.2">'
        '<joint type="hinge" axis="0 1 0"/><geom size="0.1" pos="1e-4 0 0"/></body></worldbody></mujoco>'
    )
    sampler = Sampler(mj, 0)
    assert max(np.abs(sampler.thrown(0, 1).qvel).max() for _ in range(10)) < 100


def test_a_step_beyond_what_mujoco_goes_on_from_is_not_compared() -> None:
    """A joint turns by 3e9 rad in a step, and after four of them MuJoCo resets the state."""
    mj = mujoco.MjModel.from_xml_string(
        '<mujoco><option timestep="2e7"/><worldbody><body><joint name="j" damping="1"/><geom size="0.1"/></body>'
        '</worldbody><actuator><motor ctrlrange="-3 3" gear="50" joint="j"/></actuator></mujoco>'
    )
    data = mujoco.MjData(mj)
    for qpos, sane in ((9.9e9, True), (1.1e10, False), (np.inf, False), (np.nan, False)):
        data.qpos[:] = qpos
        assert is_sane(data) == sane
    steps = follow(Oracle(mj), Sampler(mj, 1), 40)
    assert np.abs(steps.after["qpos"]).max() < mujoco.mjMAXVAL
