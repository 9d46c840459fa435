"""Bad input fails at the call, in one sentence that says what, where and what to do, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from simengine import BackendError, NonFiniteError, Simulation, load_model
from tests.emission.worlds import BALL, host, refused, snapshot
from tests.models import OWN

WORLDS = 4


def make(**options: Any) -> Simulation:
    """A simulation of four balls, with options that a test spoils."""
    return Simulation(**{"model": BALL, "num_worlds": WORLDS, "backend": "host", **options})


NAN, INF = float("nan"), float("inf")
LONE = [0.0, NAN, 0.0]

CALLS: dict[str, tuple[Callable[[Simulation], Any], type[Exception], str]] = {
    "control shape": (
        lambda s: s.step(ctrl=np.zeros((WORLDS, 3))),
        ValueError,
        r"ctrl has shape \(4, 3\), expected \(4, 2\) or \(2,\)",
    ),
    "scalar control": (lambda s: s.step(ctrl=1.0), ValueError, r"ctrl has shape \(\), expected"),
    "control NaN": (
        lambda s: s.step(ctrl=[[0, 0], [0, NAN], [0, 0], [0, 0]]),
        ValueError,
        r"ctrl holds nan at \[1, 1\]; give numbers that are finite",
    ),
    "control of text": (
        lambda s: s.step(ctrl=["fast", "slow"]),
        ValueError,
        "ctrl is no rectangular array of real numbers",
    ),
    "ragged control": (
        lambda s: s.step(ctrl=[[0, 0], [0]]),
        ValueError,
        "ctrl is no rectangular array of real numbers",
    ),
    "qpos shape": (
        lambda s: s.set_state(qpos=np.zeros((3, 3))),
        ValueError,
        r"qpos has shape \(3, 3\), expected \(4, 3\) or \(3,\)",
    ),
    "qpos transposed": (lambda s: s.set_state(qpos=np.zeros((3, 4))), ValueError, r"qpos has shape \(3, 4\)"),
    "qpos of some": (
        lambda s: s.set_state([0, 1], qpos=np.zeros((4, 3))),
        ValueError,
        r"qpos has shape \(4, 3\), expected \(2, 3\)",
    ),
    "qpos NaN": (
        lambda s: s.set_state(qpos=LONE),
        ValueError,
        r"qpos holds nan at \[1\]; give numbers that are finite",
    ),
    "qvel infinite": (
        lambda s: s.set_state(qpos=[1, 2, 3], qvel=[0, 0, -INF]),
        ValueError,
        r"qvel holds -inf at \[2\]",
    ),
    "beyond float32": (lambda s: s.set_state(qvel=[0, 1e39, 0]), ValueError, r"qvel holds 1e\+39 at \[1\].*float32"),
    "parameter beyond float32": (
        lambda s: s.set_params(body_mass=np.array([0, 1e39])),
        ValueError,
        r"body_mass holds 1e\+39 at \[1\].*finite in float32",
    ),
    "qpos masked": (lambda s: s.set_state(qpos=None), ValueError, "qpos is no rectangular array of real numbers"),
    "complex qpos": (
        lambda s: s.set_state(qpos=[1j, 0, 0]),
        ValueError,
        "qpos is no rectangular array of real numbers",
    ),
    "no state field": (
        lambda s: s.set_state(xpos=[0, 0, 0]),
        ValueError,
        "'xpos' is not a state field that can be set.*; choose from qpos",
    ),
    "world too large": (
        lambda s: s.set_state([1, 4], qpos=[1, 2, 3]),
        ValueError,
        "world 4 does not exist; there are 4, numbered from 0",
    ),
    "world negative": (lambda s: s.reset([-1]), ValueError, "world -1 does not exist; there are 4, numbered from 0"),
    "world fraction": (lambda s: s.reset([0.5]), ValueError, r"worlds must be None, a mask or a list of indices"),
    "world table": (lambda s: s.reset(np.zeros((2, 2), int)), ValueError, r"got an array of shape \(2, 2\)$"),
    "world text": (lambda s: s.reset("all"), ValueError, r"worlds must be None, a mask or a list of indices"),
    "worlds twice": (lambda s: s.set_state([1, 1], qpos=np.ones((2, 3))), ValueError, "world 1 .*twice"),
    "mask shape": (
        lambda s: s.reset(np.ones(3, dtype=bool)),
        ValueError,
        r"mask of worlds has shape \(3,\), expected \(4,\)",
    ),
    "mask of matrix": (
        lambda s: s.reset(np.ones((4, 1), dtype=bool)),
        ValueError,
        r"mask of worlds has shape \(4, 1\)",
    ),
    "no step": (lambda s: s.step(0), ValueError, r"step\(n\) takes a positive number of steps, got 0"),
    "negative steps": (lambda s: s.step(-2), ValueError, "positive number of steps, got -2"),
    "half a step": (lambda s: s.step(0.5), ValueError, "positive number of steps, got 0.5"),
    "true steps": (lambda s: s.step(True), ValueError, "positive number of steps, got True"),
    "controls as steps": (lambda s: s.step(np.zeros((4, 2))), ValueError, "positive number of steps"),
    "unknown field": (
        lambda s: s.field("qacceleration"),
        ValueError,
        "the state table has no field 'qacceleration'.*; see",
    ),
    "misspelt field": (lambda s: s.field("qfrc_bais"), ValueError, r"no field 'qfrc_bais' \(did you mean 'qfrc_bias'"),
    "misspelt state field": (
        lambda s: s.set_state(qpso=[0, 0, 0]),
        ValueError,
        r"'qpso' is not a state field that can be set \(did you mean 'qpos'",
    ),
    "misspelt parameter": (
        lambda s: s.set_params(geom_frictions=1.0),
        ValueError,
        r"'geom_frictions' is not a parameter that worlds may differ in \(did you mean 'geom_friction'",
    ),
    "misspelt parameter to read": (lambda s: s.params("body_mas"), ValueError, r"\(did you mean 'body_mass'"),
    "misspelt sensor": (lambda s: s.sensor("heigth"), ValueError, r"no sensor 'heigth' \(did you mean 'height'\?\)"),
    "misspelt keyframe": (
        lambda s: s.reset(keyframe="alfot"),
        ValueError,
        r"no keyframe 'alfot' \(did you mean 'aloft'\?\); it has numbers 0 to 0 and names 'aloft'",
    ),
    "unknown group": (lambda s: s.schedule.counts(3), IndexError, "there is no group 3; sim.groups has 1"),
    "stale field": (
        lambda s: s.field("qacc"),
        ValueError,
        r"'qacc' does not hold the latest step; call forward\(\), or pass keep=",
    ),
    "stale qacc": (lambda s: s.qacc, ValueError, "'qacc' does not hold the latest step"),
    "contact field": (
        lambda s: s.field("contact_dist"),
        ValueError,
        r"no fixed number of entries a world; use contacts\(world\)",
    ),
    "row field": (
        lambda s: s.field("efc_J"),
        ValueError,
        r"no fixed number of entries a world; use constraints\(world\)",
    ),
    "column field": (lambda s: s.field("counts"), ValueError, "the state table has no field 'counts'"),
    "stale contacts": (
        lambda s: s.contacts(0),
        ValueError,
        r"contacts\(world\) shows the latest forward\(\); call forward\(\) first",
    ),
    "stale rows": (lambda s: s.constraints(0), ValueError, r"constraints\(world\) shows the latest forward"),
    "contacts of none": (lambda s: s.contacts(4), ValueError, "world 4 does not exist; there are 4, numbered from 0"),
    "contacts of -1": (lambda s: s.contacts(-1), ValueError, "world -1 does not exist"),
    "contacts of text": (lambda s: s.contacts("0"), ValueError, "world '0' does not exist"),
}


OF_THE_LIST = ("unknown group",)
"""Calls to what only backends with kernel lists have."""


@cache
def on_jax() -> Simulation:
    """One simulation for all calls, since it is compiled."""
    return make(backend="jax")


@pytest.mark.parametrize(
    ("name", "backend"), [*((n, "host") for n in CALLS), *((n, "jax") for n in CALLS if n not in OF_THE_LIST)]
)
def test_a_bad_call_changes_nothing(name: str, backend: str) -> None:
    call, kind, words = CALLS[name]
    sim = make() if backend == "host" else on_jax()
    sim.set_state(qpos=np.random.default_rng(0).normal(size=(WORLDS, 3)), qvel=[1, 2, 3], ctrl=[0.5, -0.5])
    sim.step(3)
    before = snapshot(sim)
    refused(lambda: call(sim), kind, words)
    assert snapshot(sim) == before
    sim.step()
    assert snapshot(sim) != before


def test_fields_of_an_earlier_forward_are_stale_after_a_step() -> None:
    sim = make()
    sim.forward()
    assert sim.qacc.shape == (WORLDS, 3)
    sim.step()
    refused(lambda: sim.qacc, ValueError, "does not hold the latest step")
    refused(lambda: sim.contacts(0), ValueError, "call forward")


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.qpos,
        lambda s: s.qvel,
        lambda s: s.ctrl,
        lambda s: s.time,
        lambda s: s.model,
        lambda s: s.field("qpos"),
        lambda s: s.contacts(0),
        lambda s: s.constraints(0),
        lambda s: s.reset([0]),
        lambda s: s.set_state(ctrl=[0, 0]),
        lambda s: s.step(ctrl=np.zeros((2, 2))),
    ],
)
def test_single_model_calls_on_several_models(call: Callable[[Simulation], Any]) -> None:
    sim = Simulation([(BALL, 2), (OWN["pile"], 1)], backend="host")
    before = snapshot(sim)
    refused(
        lambda: call(sim), ValueError, r"needs to know the group of a simulation of several models; use sim.groups\[i\]"
    )
    assert snapshot(sim) == before


def test_stepping_after_close() -> None:
    sim = make()
    sim.close()
    sim.close()
    calls: dict[str, Callable[[], Any]] = {
        "step": sim.step,
        "forward": sim.forward,
        "reset": sim.reset,
        "qpos": lambda: sim.qpos,
        "set_state": lambda: sim.set_state(qpos=[0, 0, 0]),
        "add_group": lambda: sim.add_group(BALL, 1),
        "kernel_list": lambda: sim.schedule.kernel_list,
        "trace_step": sim.schedule.trace_step,
    }
    for name, call in calls.items():
        assert refused(call, RuntimeError, "closed; make a new Simulation"), name
    assert repr(sim) == "Simulation(4 x 'ball', closed)"


def test_a_trace_of_jax() -> None:
    sim = make(backend="jax")
    refused(sim.schedule.trace_step, BackendError, "backend 'jax' runs no kernel list.*use backend='host' or 'cuda'")


def test_fields_that_jax_does_not_compute() -> None:
    sim = make(backend="jax", keep="solver_niter")
    sim.step()
    refused(
        lambda: sim.field("solver_niter"),
        ValueError,
        "backend 'jax' does not compute field 'solver_niter'; use backend=",
    )


def test_a_world_gone_bad_says_where_and_what_to_do() -> None:
    sim = host(BALL, 9)
    np.asarray(sim.qpos)[[1, 2, 3, 4, 7], 0] = NAN
    error = refused(sim.step, NonFiniteError, r"world 1 \(in input\).*and 1 more; those worlds are frozen .*reset them")
    assert isinstance(error, FloatingPointError)
    assert error.worlds == (1, 2, 3, 4, 7)
    assert error.stages == ("input",) * 5


def test_a_range_beyond_float32_is_none() -> None:
    model = load_model(BALL.replace("<motor ", '<motor forcerange="-0.1 0.1" '))
    assert model.actuator_forcelimited.all()
    speeds = []
    for high in (1e300, 1e30, 0.01):
        sim = make(model=model)
        sim.set_params(actuator_forcerange=np.tile((-high, high), (model.nu, 1)))
        sim.step(5, ctrl=[1.0, -2.0])
        speeds.append(np.array(sim.qvel))
    np.testing.assert_array_equal(speeds[0], speeds[1])
    assert np.abs(speeds[1] - speeds[2]).max() > 1e-3
