"""Worlds of 33 to 64 dofs, whose matrices have more rows than a warp has lanes: against MuJoCo, and their bits."""

from __future__ import annotations

import pytest

from simengine import Model, Simulation, check_model, load_model
from simengine.zoo import pile_xml
from tests.gpu.compare import cuda_only, host_later, state_bits
from tests.helpers.humanoids import humanoid_xml

LINKS = 38


def snake(option: str, joint: str = "", links: int = LINKS) -> str:
    """A chain of hinges on a floor: its matrices are dense, and so are the rows of its tail's contacts."""
    chain = ends = ""
    for i in range(links):
        axis = "0 0 1" if i % 2 else "0 1 0"
        chain += (
            f'<body pos="0.1 0 0"><joint axis="{axis}" range="-30 30" damping="0.05" armature="0.01" {joint}/>'
            '<geom type="capsule" fromto="0 0 0 0.1 0 0" size="0.03" mass="0.1" contype="0"/>'
        )
        ends += "</body>"
    return f"""
<mujoco><option timestep="0.002" {option}/>
  <worldbody><geom type="plane" size="9 9 1"/>
    <body pos="0 0 0.03"><freejoint/><geom type="sphere" size="0.03" mass="0.1" contype="0"/>{chain}{ends}</body>
  </worldbody>
</mujoco>
"""


MODELS = {
    "heap": pile_xml(10, "mixed"),
    "heap on elliptic cones": pile_xml(10, "mixed").replace("<option", '<option cone="elliptic"', 1),
    "snake": snake(""),
    "snake with every row": snake('cone="elliptic"', 'frictionloss="0.01"'),
    "humanoid": humanoid_xml(35, 'integrator="implicitfast"'),
    "humanoid that only pushes": humanoid_xml(38, 'integrator="implicitfast"', frictionloss=0),
    "humanoid on elliptic cones": humanoid_xml(48, 'integrator="implicitfast" cone="elliptic"'),
    "humanoid in four evaluations": humanoid_xml(60, 'integrator="RK4"'),
}


def as_one_problem(name: str) -> Model:
    """A model, also where a GPU would solve it by islands."""
    model = load_model(MODELS[name])
    model.table.solve_by_islands(False)
    return model


def agrees(backend: str, name: str, dtype: str) -> None:
    """Raise AssertionError unless a model's steps are MuJoCo's."""
    model = as_one_problem(name)
    assert 32 < model.nv <= 64
    assert not model.table.has_islands
    report = check_model(model, backend=backend, dtype=dtype, num_states=12, num_steps=20)
    assert report.passed, report.verdict()


@host_later
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", MODELS)
def test_wide_worlds_agree_with_mujoco(backend: str, name: str, dtype: str) -> None:
    agrees(backend, name, dtype)


def test_one_of_them_on_the_host_agrees() -> None:
    agrees("host", "snake", "float64")


@cuda_only
@pytest.mark.parametrize("name", MODELS)
def test_wide_worlds_have_the_same_bits_under_every_executor(backend: str, name: str) -> None:
    found = []
    for executor in ("serial", "graph-cached", "device"):
        sim = Simulation(as_one_problem(name), 20, backend=backend, executor=executor)
        sim.step(40)
        found.append(state_bits(sim))
        sim.close()
    assert found[0] == found[1] == found[2]
