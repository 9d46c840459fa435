"""Worlds of many tendons and actuators, on each of which a block of a GPU works: against MuJoCo, and their bits."""

from __future__ import annotations

import pytest

from simengine import Simulation, check_model, load_model
from simengine.plan import selection, step_plan
from tests.gpu.compare import cuda_only, host_later, state_bits

LINKS = 20


def pulled(option: str, links: int = LINKS, actuator: str = "") -> str:
    """A chain of hinges that hangs from the world, with a muscle on each of its tendons, some of them around a geom."""
    chain = ends = tendons = muscles = ""
    for i in range(links):
        axis = "0 1 0" if i % 2 else "1 0 0"
        chain += (
            f'<body pos="0 0 {-0.1 if i else 0}"><joint axis="{axis}" range="-40 40" damping="0.05" armature="0.01"/>'
            f'<geom name="g{i}" type="cylinder" fromto="-0.02 0 -0.05 0.02 0 -0.05" size="0.03" mass="0.1"/>'
            f'<site name="a{i}" pos="0.04 0 -0.03"/><site name="b{i}" pos="-0.03 0.03 -0.07"/>'
        )
        ends += "</body>"
    for i in range(links - 3):
        around = f'<geom geom="g{i + 1}"/>' if i % 3 == 0 else f'<site site="b{i + 1}"/>'
        tendons += (
            f'<spatial name="t{i}" stiffness="{i % 2}"><site site="a{i}"/>{around}<site site="a{i + 2}"/>'
            f'<site site="b{i + 3}"/></spatial>'
        )
        muscles += f'<muscle tendon="t{i}" lengthrange="0.1 0.5" force="20"/>'
    return f"""
<mujoco><option timestep="0.002" {option}><flag contact="disable"/></option>
  <worldbody>{chain}{ends}</worldbody>
  <tendon>{tendons}</tendon>
  <actuator>{muscles}{actuator}</actuator>
</mujoco>
"""


ON_SITE = f'<general site="a{LINKS - 1}" gear="1 0 0 0 0 0.1"/>'
MODELS = {
    "chain": pulled(""),
    "chain in four evaluations": pulled('integrator="RK4"'),
    "chain of 40 dofs": pulled('integrator="implicitfast"', links=40),
    "chain of 70 dofs": pulled("", links=70),
    "chain with a force at a site": pulled("", actuator=ON_SITE),
}


@host_later
@pytest.mark.parametrize("name", MODELS)
def test_worlds_of_many_tendons_agree_with_mujoco(backend: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_plan, "FEWEST_ENTRIES_OF_A_BLOCK", 1)
    report = check_model(load_model(MODELS[name]), backend=backend, dtype="float32", num_states=12, num_steps=20)
    assert report.passed, report.verdict()


@cuda_only
@pytest.mark.parametrize("name", MODELS)
def test_they_have_the_same_bits_with_and_without_blocks_and_under_every_executor(
    backend: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    many = selection.FEWEST_ENTRIES_OF_A_BLOCK * 1000
    ways = [("serial", many), ("serial", 1), ("graph-cached", 1), ("streams", 1), ("device", 1)]
    for executor, fewest in ways:
        monkeypatch.setattr(step_plan, "FEWEST_ENTRIES_OF_A_BLOCK", fewest)
        sim = Simulation(load_model(MODELS[name]), 20, backend=backend, executor=executor)
        names = {kernel.name for kernel in sim.schedule.plan().kernels(frozenset())}
        assert ("tendons_by_block" in names) == (fewest == 1)
        sim.step(40)
        found.append(state_bits(sim))
        sim.close()
    assert all(one == found[0] for one in found)
