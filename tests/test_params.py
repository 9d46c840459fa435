"""Parameters that differ from world to world: results are those of models compiled with these values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simengine import BackendError, Simulation, load_model
from simengine.engine import ListEngine
from tests.params import WORLDS, drawn, errors, model, simulated, states

NAMES = ("ant", "hopper", "mixed_tree", "tendons", "ragdoll", "pile", "glider", "heap")


CASES = [
    *(pytest.param(name, "float64", 1e-9, id=f"{name}-float64") for name in NAMES),
    *(pytest.param(name, "float32", 2e-3, id=f"{name}-float32") for name in ("ant", "tendons")),
]


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
    sim = simulated(model("hopper"), WORLDS, states("hopper"))
    group = sim.groups[0]
    assert np.array_equal(group.params("body_mass"), np.tile(sim.model.mj.body_mass, (WORLDS, 1)))
    sim.set_params(body_mass=2 * sim.model.mj.body_mass, dof_damping=np.ones((WORLDS, sim.model.nv)))
    engine = sim._engine
    assert isinstance(engine, ListEngine)
    table, emitters = engine.parameters[0].table, engine.emitters[0]
    sim.step()
    for factor in (0.5, 3.0):
        sim.set_params(np.array([True, False, False, False]), body_mass=factor * sim.model.mj.body_mass)
        sim.step()
    assert engine.parameters[0].table is table
    assert engine.emitters[0] is emitters
    assert np.array_equal(group.params("body_mass")[0], 3 * sim.model.mj.body_mass)
    assert np.array_equal(group.params("body_mass")[1], 2 * sim.model.mj.body_mass)


def test_damping_may_come_where_the_model_has_none() -> None:
    """The Euler step then takes it implicitly, as that of a model with damping."""
    body = "<body><joint name='j' axis='0 1 0'/><geom size='.1' pos='.5 0 0'/></body>"
    xml = f"<mujoco><worldbody>{body}</worldbody></mujoco>"
    sim = simulated(load_model(xml), 2, {"qvel": np.ones(1)}, dtype="float64")
    sim.set_params(dof_damping=[[0.0], [0.3]])
    damped = simulated(load_model(xml.replace("name='j'", "damping='0.3'")), 1, {"qvel": np.ones(1)}, dtype="float64")
    for each in (sim, damped):
        each.step(50)
    np.testing.assert_allclose(sim.qvel[1], damped.qvel[0], rtol=1e-13)
    assert abs(sim.qvel[0] - sim.qvel[1]) > 0.05


def test_groups_have_parameters_of_their_own() -> None:
    sim = Simulation([(model("hopper"), 2), (model("hopper"), 2)], backend="host")
    sim.groups[1].set_params(gravity=[0, 0, 0])
    sim.step(20)
    assert sim.groups[0].qpos[0, 1] < sim.groups[1].qpos[0, 1]


def test_bad_parameters_are_refused_and_change_nothing() -> None:
    sim = simulated(model("ant"), WORLDS, states("ant"))
    plain = simulated(model("ant"), WORLDS, states("ant"))
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
    for each in (sim, plain):
        each.step(3)
    assert sim.qpos.tobytes() == plain.qpos.tobytes()


def test_jax_has_no_parameters_of_single_worlds() -> None:
    with pytest.raises(BackendError, match="use backend='host' or 'cuda'"):
        Simulation(model("hopper"), 2, backend="jax").set_params(gravity=[0, 0, 0])
