"""Worlds of more than 64 dofs whose matrices have entries along branches only: against MuJoCo, and their bits."""

from __future__ import annotations

import pytest

from simengine import Simulation, check_model, load_model
from simengine.backends.host import HostBackend
from simengine.model.model import Model
from simengine.plan import step_plan
from simengine.plan.selection import Selection
from simengine.zoo import pile_xml
from tests.gpu.compare import cuda_only, host_later, state_bits
from tests.gpu.test_wide_worlds import snake
from tests.helpers.humanoids import humanoid_xml

ARMS, LINKS = 8, 9


def star(option: str, equality: str = "") -> str:
    """Arms on a free body that fall on each other: contacts couple two branches of one tree, and so do equalities."""
    arms = ""
    for arm in range(ARMS):
        links = ends = ""
        for i in range(LINKS):
            axis = "0 1 0" if i % 2 else "1 0 0"
            links += (
                f'<body name="b{arm}_{i}" pos="0 0 {0.08 if i else 0.05}"><joint name="j{arm}_{i}" axis="{axis}" '
                'range="-60 60" damping="0.02" armature="0.005"/>'
                '<geom type="capsule" fromto="0 0 0 0 0 0.08" size="0.015" mass="0.05"/>'
            )
            ends += "</body>"
        arms += f'<body euler="{360 * arm // ARMS} 70 0">{links}{ends}</body>'
    return f"""
<mujoco><option timestep="0.002" {option}/>
  <worldbody><geom type="plane" size="9 9 1"/>
    <body pos="0 0 0.5"><freejoint/><geom type="sphere" size="0.04" mass="1"/>{arms}</body>
  </worldbody>
  <equality>{equality}</equality>
</mujoco>
"""


EQUALITIES = (
    '<joint joint1="j0_1" joint2="j3_2" polycoef="0 1 0 0 0"/><connect body1="b1_8" body2="b5_8" anchor="0 0 0.08"/>'
)
NOSLIP_ON_CONES = "star with noslip on elliptic cones"
MODELS = {
    "snake": snake("", links=66),
    "humanoid": humanoid_xml(72, 'integrator="implicitfast"'),
    "humanoid that only pushes": humanoid_xml(66, frictionloss=0),
    "humanoid in four evaluations": humanoid_xml(70, 'integrator="RK4"', frictionloss=0),
    "star": star(""),
    "star on elliptic cones": star('cone="elliptic"', EQUALITIES),
    "star with noslip": star('noslip_iterations="2"', EQUALITIES),
    NOSLIP_ON_CONES: star('cone="elliptic" noslip_iterations="2"', EQUALITIES),
    "heap": pile_xml(12, "mixed"),
}
# In float32 two sweeps over contacts on elliptic cones end where rounding leads them, with dense matrices too. Rounding
# poses and inertia of a chain of 66 links to float32 changes the accelerations of MuJoCo itself as much as the bound.
LED_BY_ROUNDING = {(NOSLIP_ON_CONES, "float32"), ("snake", "float32")}
CASES = [(n, d) for n in MODELS for d in ("float64", "float32") if (n, d) not in LED_BY_ROUNDING]


def loaded(name: str) -> Model:
    """A model, solved as one problem."""
    model = load_model(MODELS[name])
    model.table.solve_by_islands(False)
    assert 64 < model.nv <= 256
    return model


@pytest.fixture(autouse=True)
def _host_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the host's kernels keep matrices along branches, which it does not do by itself."""
    monkeypatch.setattr(HostBackend, "along_branches", lambda self, nv: True)
    monkeypatch.setattr(step_plan, "LEAST_WORLDS", 2**31)  # no tiles


def agrees(backend: str, name: str, dtype: str) -> None:
    """Raise AssertionError unless a model's steps are MuJoCo's."""
    report = check_model(loaded(name), backend=backend, dtype=dtype, num_states=12, num_steps=20)
    assert report.passed, report.verdict()


@host_later
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_worlds_along_branches_agree_with_mujoco(backend: str, name: str, dtype: str) -> None:
    agrees(backend, name, dtype)


def test_one_of_them_on_the_host_agrees() -> None:
    agrees("host", NOSLIP_ON_CONES, "float64")


@cuda_only
@pytest.mark.parametrize("name", MODELS)
def test_worlds_along_branches_have_the_same_bits_under_every_executor(backend: str, name: str) -> None:
    found = []
    for executor in ("serial", "graph-cached", "device"):
        sim = Simulation(loaded(name), 20, backend=backend, executor=executor)
        sim.step(40)
        found.append(state_bits(sim))
        sim.close()
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["star", "humanoid"])
def test_a_factor_that_is_made_beside_the_solver_gives_the_same_bits(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether few worlds have it depends on their number."""
    found, lists = [], []
    for beside in (False, True):
        monkeypatch.setattr(Selection, "factors_beside_solver", property(lambda self, b=beside: b and self.integrator))
        model = load_model(MODELS["star on elliptic cones"] if name == "star" else humanoid_xml(72))
        model.table.solve_by_islands(False)
        with Simulation(model, 3, backend="host", executor="serial", dtype=dtype) as sim:
            sim.step(60)
            assert sim.schedule.counts()["nefc"] > 3
            found.append(state_bits(sim))
            lists.append(str(sim.schedule.plan()))
    assert found[0] == found[1]
    assert "only_euler_factor_branches" in lists[1]
    assert "only_euler_factor_branches" not in lists[0]
