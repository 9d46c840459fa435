"""Parameters that differ from world to world: results are those of models compiled with these values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.model.params import PARAMS, WorldParameters
from tests.helpers.params import WORLDS, compiled, drawn, errors, model, simulated, states, unmark

NAMES = ("ant", "hopper", "mixed_tree", "tendons", "ragdoll", "pile", "glider", "heap")


CASES = [
    *(pytest.param(name, "float64", 1e-9, id=f"{name}-float64") for name in NAMES),
    *(pytest.param(name, "float32", 2e-3, id=f"{name}-float32") for name in ("ant", "tendons")),
]


HINGE = """<mujoco><worldbody><body><joint name='j' axis='0 1 0'/><geom size='.1' pos='.5 0 0'/></body></worldbody>
</mujoco>"""

EVERYTHING = """<mujoco>
  <option timestep="0.004" cone="elliptic" integrator="RK4" tolerance="1e-14" iterations="200"
    density="1.2" viscosity="0.02" wind="0.3 0.1 0"/>
  <default>
    <joint frictionloss="0.05" damping="0.1" armature="0.01" stiffness="2"/>
    <geom contype="0" conaffinity="0"/><tendon frictionloss="0.1" stiffness="20" damping="0.1"/>
  </default>
  <worldbody>
    <geom type="plane" size="2 2 1" conaffinity="1" friction="0.2"/>
    <site name="hook" pos="0.05 0 1"/>
    <body pos="0 0 0.6">
      <joint name="swing" axis="0 1 0" range="-70 70" limited="true"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.03"/><site name="wrist" pos="0 0 -0.3"/>
      <body pos="0 0 -0.3"><joint type="ball"/><geom type="box" size="0.05 0.04 0.03" pos="0 0 -0.04"/></body>
    </body>
    <body pos="1 0 0.1">
      <joint name="slide" type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><joint axis="0 1 0"/>
      <geom size="0.1" mass="2" friction="0.6" contype="1" condim="4"/>
    </body>
  </worldbody>
  <tendon>
    <spatial name="cord" springlength="0.3"><site site="hook"/><site site="wrist"/></spatial>
    <fixed name="sum" springlength="0.1"><joint joint="swing" coef="1"/><joint joint="slide" coef="0.5"/></fixed>
  </tendon>
  <actuator>
    <position joint="slide" kp="30" ctrlrange="-0.5 0.5"/><motor tendon="cord" gear="3" forcerange="-2 2"/>
    <general joint="swing" gaintype="affine" gainprm="1 0.2 0.1" biastype="affine" biasprm="0.1 -2 -0.1"/>
  </actuator>
  <sensor><jointlimitpos joint="swing"/><rangefinder site="hook"/><e_potential/></sensor>
</mujoco>"""
"""A model that has every parameter."""


def fallen() -> dict[str, np.ndarray]:
    """A state of it in which everything acts, and controls beyond their ranges."""
    qpos = np.array([-1.3, 0.9, 0.3, 0.2, 0.1, 0.05, -0.02, 0.4])
    qpos[1:5] /= np.linalg.norm(qpos[1:5])
    return {"qpos": qpos, "qvel": np.linspace(-1, 1, 7), "ctrl": np.array([0.9, 2.0, 0.5])}


@pytest.mark.parametrize(("name", "dtype", "tolerance"), CASES)
def test_results_are_those_of_compiled_models(name: str, dtype: str, tolerance: float) -> None:
    assert {"gravity", "body_mass", "dof_damping"} <= set(drawn(name))
    assert max(errors(name, dtype, "host")) < tolerance


def test_worlds_that_were_not_named_keep_their_bits() -> None:
    """And those that were given the model's own values differ by no more than rounding."""
    state = states("ant")
    plain, sim = simulated(model("ant"), WORLDS, state), simulated(model("ant"), WORLDS, state)
    sim.set_params([1, 3], geom_friction=np.array([0.2, 0.01, 0.001]) * np.ones((14, 3)), gravity=[0, 0, -5])
    for each in (plain, sim):
        each.step(30)
    same = [plain.qpos[world].tobytes() == sim.qpos[world].tobytes() for world in range(WORLDS)]
    assert same == [True, False, True, False]
    assert sim.qpos[1].tobytes() == sim.qpos[3].tobytes()


def test_parameters_can_be_read_and_set_again_without_new_memory() -> None:
    sim = simulated(model("hopper"), WORLDS, states("hopper"), emission="ahead")
    group = sim.groups[0]
    assert np.array_equal(group.params("body_mass"), np.tile(sim.model.mj.body_mass, (WORLDS, 1)))
    sim.set_params(body_mass=2 * sim.model.mj.body_mass, dof_damping=np.ones((WORLDS, sim.model.nv)))
    sim.step()
    held, lists = sim.nbytes(), sim.schedule.emitters()
    for factor in (0.5, 3.0):
        sim.set_params(np.array([True, False, False, False]), body_mass=factor * sim.model.mj.body_mass)
        sim.step()
    assert sim.nbytes() == held
    assert all(one is other for one, other in zip(sim.schedule.emitters(), lists, strict=True))
    assert np.array_equal(group.params("body_mass")[0], 3 * sim.model.mj.body_mass)
    assert np.array_equal(group.params("body_mass")[1], 2 * sim.model.mj.body_mass)


@pytest.mark.parametrize("backend", ["host", "jax"])
def test_damping_may_come_where_the_model_has_none(backend: str) -> None:
    """The Euler step then takes it implicitly, as that of a model with damping."""
    sim = simulated(load_model(HINGE), 2, {"qvel": np.ones(1)}, dtype="float64", backend=backend)
    sim.set_params(dof_damping=[[0.0], [0.3]])
    damped = simulated(load_model(HINGE.replace("name='j'", "damping='0.3'")), 1, {"qvel": np.ones(1)}, dtype="float64")
    for each in (sim, damped):
        each.step(50)
    np.testing.assert_allclose(sim.qvel[1], damped.qvel[0], rtol=1e-13 if backend == "host" else 1e-11)
    assert abs(sim.qvel[0] - sim.qvel[1]).item() > 0.05


@pytest.mark.parametrize("backend", ["host", "jax"])
@pytest.mark.parametrize("actuated", ["", 'actuatorgravcomp="true" actuatorfrcrange="-0.3 0.3"'])
def test_gravity_may_come_where_the_model_has_none(backend: str, actuated: str) -> None:
    """It is compensated then as in a model with gravity."""
    text = f"""<mujoco><option gravity="0 0 0"/><worldbody><body gravcomp="0.4">
    <joint name="j" axis="0 1 0" {actuated}/><geom size=".1" pos=".5 0 0"/></body></worldbody>
    <actuator><motor joint="j"/></actuator></mujoco>"""
    sim = simulated(load_model(text), 2, {"qvel": np.ones(1)}, dtype="float64", backend=backend)
    sim.set_params(gravity=[[0.0, 0.0, 0.0], [0.0, 0.0, -5.0]])
    mj = mujoco.MjModel.from_xml_string(text)
    for world, gravity in enumerate((0.0, -5.0)):
        mj.opt.gravity[2], data = gravity, mujoco.MjData(mj)
        data.qvel[:] = 1
        mujoco.mj_forward(mj, data)
        sim.forward()
        np.testing.assert_allclose(np.asarray(sim.qacc)[world], data.qacc, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("backend", ["host", "jax"])
def test_a_reset_goes_to_each_worlds_own_reference(backend: str) -> None:
    sim = simulated(load_model(HINGE), 3, {"qvel": np.ones(1)}, dtype="float64", backend=backend)
    sim.set_params([0, 2], qpos0=[[0.5], [-0.25]])
    sim.step()
    sim.reset()
    assert np.asarray(sim.qpos)[:, 0].tolist() == [0.5, 0.0, -0.25]
    sim.set_state(qpos=np.ones((3, 1)))
    sim.reset([2])
    assert np.asarray(sim.qpos)[:, 0].tolist() == [1.0, 1.0, -0.25]


def test_groups_have_parameters_of_their_own() -> None:
    sim = Simulation([(model("hopper"), 2), (model("hopper"), 2)], backend="host")
    sim.groups[1].set_params(gravity=[0, 0, 0])
    sim.step(20)
    assert sim.groups[0].qpos[0, 1] < sim.groups[1].qpos[0, 1]


@pytest.mark.parametrize("backend", ["host", "jax"])
def test_bad_parameters_are_refused_and_change_nothing(backend: str) -> None:
    sim = simulated(model("ant"), WORLDS, states("ant"), backend=backend)
    bad: list[tuple[str, dict[str, Any]]] = [
        ("'geom_pos' is not a parameter that worlds may differ in", {"geom_pos": np.zeros(3)}),
        ("density of model 'ant' cannot differ between worlds: it has no fluid", {"density": 1.0}),
        ("some dofs have no friction loss", {"dof_frictionloss": np.ones(14)}),
        (r"body_mass has shape \(3,\), expected \(4, 14\) or \(14,\)", {"body_mass": np.ones(3)}),
        ("gravity holds nan at", {"gravity": [0, 0, np.nan]}),
    ]
    for words, params in bad:
        with pytest.raises(ValueError, match=words):
            sim.set_params(**{"dof_damping": np.full(14, 9.0)} | params)
    assert not (np.asarray(sim.groups[0].params("dof_damping")) == 9).any()
    if backend == "host":
        plain = simulated(model("ant"), WORLDS, states("ant"))
        for each in (sim, plain):
            each.step(3)
        assert sim.qpos.tobytes() == plain.qpos.tobytes()


@pytest.mark.slow
def test_steps_in_jax_are_those_of_compiled_models() -> None:
    """With all parameters at once, some given anew to some worlds, and one program for all of them."""
    mj = mujoco.MjModel.from_xml_string(EVERYTHING)
    sim = simulated(load_model(mj), WORLDS, fallen(), backend="jax", dtype="float64", keep=("sensordata",))
    rng, values = np.random.default_rng(4), {}
    for name in PARAMS:
        default = WorldParameters(sim.model.table).default(name)
        values[name] = default * rng.uniform(0.95, 1.05, (WORLDS, *default.shape))
        values[name][0] = default
    before = sim.nbytes()
    sim.set_params(**values)
    assert sim.nbytes() > before
    with compilations() as compiled_first:
        sim.step()
    assert compiled_first
    compare(mj, sim, values)
    first = np.asarray(sim.qpos[1]).tobytes()
    again = {"body_mass": 2 * values["body_mass"][[3, 0, 2]], "gravity": np.array([0.5, 0.0, -3.0])}
    for name, value in again.items():
        values[name][[3, 0, 2]] = value
    sim.reset()
    sim.set_state(**fallen())
    sim.set_params([3, 0, 2], **again)
    sim.set_params(np.zeros(WORLDS, bool), body_mass=np.ones(sim.model.nbody))
    with compilations() as compiled_again:
        sim.step()
    assert not compiled_again
    compare(mj, sim, values)
    assert np.asarray(sim.qpos[1]).tobytes() == first  # it was not named
    for name, value in values.items():
        assert np.array_equal(sim.groups[0].params(name), value), name


@contextmanager
def compilations() -> Iterator[list[str]]:
    """Yields a list that grows with each program that JAX compiles meanwhile."""
    found: list[str] = []

    def note(event: str, seconds: float, **about: str | int) -> None:
        if event.endswith("backend_compile_duration"):
            found.append(event)

    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        yield found
    finally:
        jax.monitoring.unregister_event_duration_listener(note)


def compare(mj: mujoco.MjModel, sim: Simulation, values: dict[str, np.ndarray]) -> None:
    """A step of every world from the fallen state with MuJoCo's."""
    unmark(mj)
    for world in range(WORLDS):
        for name, value in values.items():
            if hasattr(mj.opt, name):
                setattr(mj.opt, name, value[world])
            else:
                getattr(mj, name)[...] = value[world]
        data = mujoco.MjData(mj)
        mujoco.mj_setConst(mj, data)
        for name, value in fallen().items():
            getattr(data, name)[:] = value
        mujoco.mj_step(mj, data)
        assert (data.ncon, data.nefc) == (1, 14)
        for name in ("qpos", "qvel", "sensordata"):
            ours = sim.field(name)[world] if name == "sensordata" else getattr(sim, name)[world]
            np.testing.assert_allclose(ours, getattr(data, name), rtol=1e-9, atol=1e-9, err_msg=name)


PULLEY = """<mujoco>
  <worldbody>
    <geom name="pulley" size="0.1" pos="0.1 0 0"/><site name="hook" pos="0.02 0 0.4"/>
    <body><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.03" contype="0"/>
      <site name="wrist" pos="0.02 0 -0.3"/></body>
  </worldbody>
  <tendon><spatial name="cord"><site site="hook"/><geom geom="pulley"/><site site="wrist"/></spatial></tendon>
  <actuator><motor tendon="cord"/></actuator>
</mujoco>"""


@pytest.mark.parametrize("backend", ["host", pytest.param("jax", marks=pytest.mark.slow)])
def test_tendons_wrap_geoms_of_other_sizes(backend: str) -> None:
    sim = simulated(load_model(PULLEY), 2, {"ctrl": np.ones(1)}, backend=backend, dtype="float64")
    sizes = np.tile(sim.model.mj.geom_size, (2, 1, 1))
    sizes[1, 0, 0] = 0.15
    sim.set_params(geom_size=sizes)
    sim.forward()
    lengths = np.asarray(sim.field("ten_length"))[:, 0]
    for length, radius in zip(lengths, sizes[:, 0, 0], strict=True):
        mj = mujoco.MjModel.from_xml_string(PULLEY.replace('"0.1" pos', f'"{radius}" pos'))
        data = mujoco.MjData(mj)
        mujoco.mj_forward(mj, data)
        assert abs(data.ten_length[0] - length) < 1e-12
    assert lengths[1] > lengths[0] > 0.701


JAX_CASES = [
    *(pytest.param(name, "float64", 1e-9, id=f"{name}-float64") for name in ("ant", "tendons", "ragdoll", "glider")),
    *(pytest.param(name, "float32", 2e-3, id=f"{name}-float32") for name in ("ant", "tendons")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dtype", "tolerance"), JAX_CASES)
def test_results_in_jax_are_those_of_compiled_models(name: str, dtype: str, tolerance: float) -> None:
    """As the host's are: the worlds here against compiled models there."""
    values, state = drawn(name), states(name)
    sim = simulated(model(name), WORLDS, state, dtype=dtype, backend="jax")
    sim.set_params(**values)
    sim.forward()
    for world in range(WORLDS):
        other = simulated(compiled(name, values, world), 1, state, dtype=dtype)
        other.forward()
        for field in ("qacc", "qfrc_bias", "qacc_smooth"):
            ours, theirs = np.asarray(sim.field(field)[world]), other.field(field)[0]
            assert np.abs(ours - theirs).max() < tolerance * max(1.0, np.abs(theirs).max()), (world, field)
        losses = [each.groups[0].constraints(i).frictionloss for each, i in ((sim, world), (other, 0))]
        np.testing.assert_allclose(*losses, rtol=1e-6)
