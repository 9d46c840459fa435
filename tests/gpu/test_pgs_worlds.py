"""Worlds that PGS solves with the rows of an island in registers: against MuJoCo, and their bits."""

from __future__ import annotations

import re
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from simengine import Simulation, check_model, load_model
from tests.gpu.compare import cuda_only, host_later, state_bits

_ASSETS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
_STANDING, _LYING = ((_ASSETS / f"{name}.xml").read_text() for name in ("humanoid", "humanoidstandup"))
_JOINED = (
    '<equality><connect body1="left_lower_arm" body2="right_lower_arm" anchor="0 0 0.2"/>'
    '<weld body1="left_foot" body2="right_foot"/></equality></mujoco>'
)
_BOX = '<body pos="{} 0 1"><freejoint/><geom type="box" size=".2 .2 .2"/></body>'


def _with_losses(text: str) -> str:
    return re.sub(r"(<default>\s*)<joint ", r'\1<joint frictionloss="0.3" ', text, count=1)


def _with_dimension(text: str, condim: int) -> str:
    return re.sub(r'condim="\d"', f'condim="{condim}"', text)


MODELS = {
    "standing": _STANDING,
    "lying": _LYING,
    "lying, losses and equalities": _with_losses(_LYING).replace("</mujoco>", _JOINED),
    "without friction": _with_dimension(_STANDING, 1),
    "torsional friction": _with_dimension(_LYING, 4),
    "rolling friction": _with_dimension(_LYING, 6),
    "three islands": _STANDING.replace("</worldbody>", f"{_BOX.format(1)}{_BOX.format(3)}</worldbody>"),
    "cold start": _LYING.replace("</option>", '<flag warmstart="disable"/></option>'),
}


def agrees(backend: str, name: str, dtype: str) -> None:
    """Raise AssertionError unless a model's steps are MuJoCo's."""
    model = load_model(MODELS[name])
    assert model.table.solver == "solve_pgs"
    report = check_model(model, backend=backend, dtype=dtype, num_states=12, num_steps=20)
    assert report.passed, report.verdict()


@host_later
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", MODELS)
def test_worlds_agree_with_mujoco(backend: str, name: str, dtype: str) -> None:
    agrees(backend, name, dtype)


def test_one_of_them_on_the_host_agrees() -> None:
    agrees("host", "lying, losses and equalities", "float64")


@cuda_only
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("worlds", [20, 600])
def test_worlds_have_the_same_bits_under_every_executor(backend: str, name: str, worlds: int) -> None:
    found = []
    for executor in ("serial", "graph-cached", "streams", "device"):
        sim = Simulation(load_model(MODELS[name]), worlds, backend=backend, executor=executor)
        controls = np.random.default_rng(0).uniform(-0.4, 0.4, sim.ctrl.shape)
        sim.set_state(ctrl=controls)
        sim.step(60)
        found.append(state_bits(sim))
        sim.close()
    assert all(bits == found[0] for bits in found)
