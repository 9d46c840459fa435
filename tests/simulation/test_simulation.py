"""The public `Simulation` on the host backend: state, time, several models, and what is reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import simengine
from simengine import Simulation, load_model
from tests.emission.worlds import ANTS, BALL, ant, ant_start, host, oracle, rolling, snapshot, state
from tests.models import OWN

# ------------------------------------------------------------------------------------------------- construction


def test_one_world_is_the_default() -> None:
    sim = Simulation(BALL, backend="host")
    assert (sim.num_worlds, len(sim.groups), sim.backend, sim.dtype) == (1, 1, "host", "float32")
    assert sim.model.name == "ball"
    assert sim.qpos.shape == (1, 3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_new_simulation_is_the_model_at_rest(dtype: str) -> None:
    sim = host(ant(), 3, dtype=dtype)
    np.testing.assert_array_equal(np.asarray(sim.qpos), np.tile(ant().qpos0.astype(dtype), (3, 1)))
    for name, width in (("qvel", 14), ("ctrl", 8), ("qfrc_applied", 14), ("qacc_warmstart", 14)):
        array = np.asarray(sim.field(name))
        assert (array.shape, array.dtype, array.any()) == ((3, width), np.dtype(dtype), False)
    assert np.asarray(sim.field("xfrc_applied")).shape == (3, ant().nbody, 6)


@pytest.mark.parametrize("dtype", [np.float32, "float32", np.dtype("float32"), jnp.float32, "f4", jnp.dtype("float32")])
def test_a_precision_may_be_a_type(dtype: Any) -> None:
    sim = Simulation(BALL, backend="host", dtype=dtype)
    assert (sim.dtype, sim.qpos.dtype) == ("float32", np.float32)


def test_the_repr_says_what_runs_where() -> None:
    sim = Simulation([(BALL, 2), (OWN["pile"], 3)], backend="host", executor="serial", dtype=np.float64)
    words = "Simulation(2 x 'ball' + 3 x 'pile', backend='host', executor='serial', dtype='float64')"
    assert repr(sim) == words
    sim.step()
    assert repr(sim.schedule) == f"Schedule(executor='serial', emission='whole', {len(sim.schedule.kernel_list)} calls)"


def test_a_with_statement_closes() -> None:
    with Simulation(BALL, 2, backend="host") as sim:
        sim.step()
    with pytest.raises(RuntimeError, match="closed"):
        sim.step()


def test_parameters_read_back() -> None:
    sim = Simulation(BALL, 3, backend="host")
    np.testing.assert_array_equal(sim.params("geom_friction"), np.tile(sim.model.geom_friction, (3, 1, 1)))
    friction = np.arange(1, 7).reshape(2, 3) / 10
    sim.set_params([1], geom_friction=friction)
    np.testing.assert_array_equal(sim.params("geom_friction")[1], friction)
    np.testing.assert_array_equal(sim.groups[0].params("geom_friction")[[0, 2]], [sim.model.geom_friction] * 2)
    sim.params("geom_friction")[:] = 5.0  # a copy
    np.testing.assert_array_equal(sim.params("geom_friction")[1], friction)


def test_every_public_name_is_there() -> None:
    assert all(getattr(simengine, name) is not None for name in simengine.__all__)
    with pytest.raises(AttributeError, match="no attribute 'make_stairs'"):
        _ = simengine.make_stairs


# ------------------------------------------------------------------------------------------------------- state


@pytest.mark.parametrize("worlds", [[4, 1], np.array([4, 1]), np.array([False, True, False, False, True, False])])
def test_state_of_some_worlds(worlds: Any) -> None:
    sim = rolling()
    sim.step(2)
    before = state(sim, [0, 2, 3, 5])
    values = np.stack([ant().qpos0 + 4, ant().qpos0 + 1])
    order = [1, 0] if np.asarray(worlds).dtype == bool else [0, 1]
    sim.set_state(worlds, qpos=values[order])
    np.testing.assert_array_equal(np.asarray(sim.qpos)[[4, 1]], values.astype(np.float32))
    assert state(sim, [0, 2, 3, 5]) == before


def test_one_worlds_values_go_to_all_that_are_chosen() -> None:
    sim = rolling()
    sim.set_state([2, 3], qvel=np.arange(14.0))
    np.testing.assert_array_equal(np.asarray(sim.qvel)[2:4], np.tile(np.arange(14.0), (2, 1)))
    assert np.asarray(sim.qvel)[1].tolist() != list(range(14))


@pytest.mark.parametrize("worlds", [[], np.zeros(ANTS, dtype=bool)])
def test_no_world_is_a_choice_too(worlds: Any) -> None:
    sim = rolling()
    before = snapshot(sim)
    sim.set_state(worlds, qvel=np.zeros(14))
    sim.reset(worlds)
    assert snapshot(sim) == before


def test_setting_state_clears_the_warm_start_unless_it_is_given() -> None:
    sim = rolling()

    def warm(world: int) -> bool:
        return bool(np.asarray(sim.field("qacc_warmstart"))[world].any())

    sim.step(2)
    assert all(warm(world) for world in range(ANTS))
    sim.set_state([1], qvel=np.zeros(14))
    sim.set_state([2], ctrl=np.zeros(8))
    sim.set_state([3], qfrc_applied=np.zeros(14))
    sim.set_state([4], qpos=ant().qpos0, qacc_warmstart=np.ones(14))
    assert [warm(world) for world in range(5)] == [True, False, True, False, True]
    assert np.asarray(sim.field("qacc_warmstart"))[4].tolist() == [1.0] * 14


def test_the_warm_start_is_the_state_that_continues_a_run() -> None:
    """A copy of qpos, qvel, ctrl and qacc_warmstart goes on with the same bits."""
    sim, copy = rolling(), host(ant(), ANTS)
    sim.step(5)
    copy.set_state(**{name: np.array(sim.field(name)) for name in ("qpos", "qvel", "ctrl", "qacc_warmstart")})
    sim.step(3)
    copy.step(3)
    assert state(sim)[:3] == state(copy)[:3]


def test_applied_forces_act_and_stay() -> None:
    sim = host(ant(), 2, dtype="float64")
    force = np.zeros((ant().nbody, 6))
    force[1, 0] = 50.0
    sim.set_state([1], xfrc_applied=force, qfrc_applied=np.eye(14)[1] * 20)
    sim.step(3)
    speeds = np.asarray(sim.qvel)[:, :2]
    assert np.abs(speeds[0]).max() < 1e-9
    assert (speeds[1] > 0.01).all()
    np.testing.assert_array_equal(np.asarray(sim.field("xfrc_applied"))[1], force)


def test_controls_stay_until_they_are_changed() -> None:
    ctrl = np.random.default_rng(0).uniform(-1, 1, size=(ANTS, 8))
    once, each = rolling(), rolling()
    once.step(ctrl=ctrl)
    once.step(4)
    for _ in range(5):
        each.set_state(ctrl=ctrl)
        each.step()
    assert snapshot(once) == snapshot(each)
    np.testing.assert_array_equal(np.asarray(once.ctrl), ctrl.astype(np.float32))


def test_reset_gives_the_initial_state_to_some_or_all() -> None:
    sim = rolling()
    sim.set_state(ctrl=np.ones(8), qfrc_applied=np.ones(14))
    sim.step(3)
    others = state(sim, [0, 1, 3, 4, 5])
    sim.reset([2])
    assert state(sim, [0, 1, 3, 4, 5]) == others
    assert state(sim, [2]) == state(host(ant(), 1))
    assert not np.asarray(sim.ctrl)[2].any()
    sim.reset()
    assert snapshot(sim) == snapshot(host(ant(), ANTS))


def test_time_counts_the_steps_of_each_world() -> None:
    sim = rolling()
    sim.step(3)
    sim.reset(np.arange(ANTS) == 4)
    sim.step(100)
    assert sim.time.dtype == np.float64
    np.testing.assert_allclose(sim.time, [1.03] * 4 + [1.0, 1.03], rtol=1e-15)


def test_arrays_are_views_of_the_engines_memory() -> None:
    sim = rolling()
    assert np.shares_memory(np.asarray(sim.qpos), np.asarray(sim.field("qpos")))
    before = np.array(sim.qpos)
    np.asarray(sim.qpos)[3] = ant().qpos0
    np.testing.assert_array_equal(np.asarray(sim.qpos)[3], ant().qpos0.astype(np.float32))
    np.testing.assert_array_equal(np.asarray(sim.qpos)[:3], before[:3])


def test_kept_fields_are_mujocos_after_its_step() -> None:
    """For Euler, derived fields after a step are those of the state stepped from."""
    model = load_model(OWN["two_arms"])
    names = ("xpos", "geom_xpos", "qM", "qfrc_bias", "qacc", "cfrc_ext", "cvel")
    sim = host(model, 1, dtype="float64", keep=names)
    qvel = np.linspace(-1, 1, model.nv)
    sim.set_state(qvel=qvel)
    sim.step()
    data = oracle(model, model.qpos0, qvel)
    for name in ("xpos", "geom_xpos", "qfrc_bias", "qacc", "cvel"):
        actual, expected = np.asarray(sim.field(name))[0], getattr(data, name)
        np.testing.assert_allclose(actual.ravel(), expected.ravel(), atol=1e-9, err_msg=name)
    assert np.asarray(sim.field("cfrc_ext")).shape == (1, model.nbody, 6)


def test_keeping_a_field_changes_no_result() -> None:
    sims = [rolling(keep=keep) for keep in ((), "xpos", ("cfrc_ext", "qM", "solver_niter"))]
    for sim in sims:
        sim.step(5)
    assert snapshot(sims[0]) == snapshot(sims[1]) == snapshot(sims[2])


def test_forward_changes_no_state() -> None:
    sim = rolling()
    sim.step(2)
    before = snapshot(sim)
    sim.forward()
    assert snapshot(sim) == before


# ----------------------------------------------------------------------------------------------- several models


def test_groups_step_as_they_would_alone() -> None:
    pile, arms = load_model(OWN["pile"]), load_model(OWN["two_arms"])
    sim = Simulation([(ant(), ANTS), (pile, 3), (arms, 1)], backend="host")
    alone = [rolling(), host(pile, 3), host(arms, 1)]
    sim.groups[0].set_state(**ant_start(ANTS)._asdict())
    sim.step(10)
    for group, other in zip(sim.groups, alone, strict=True):
        other.step(10)
        assert group.model is other.model
        np.testing.assert_array_equal(np.asarray(group.qpos), np.asarray(other.qpos))
        np.testing.assert_array_equal(np.asarray(group.qvel), np.asarray(other.qvel))
    assert sim.num_worlds == ANTS + 4


def test_groups_report_their_own_contacts() -> None:
    pile = load_model(OWN["pile"])
    sim = Simulation([(ant(), 2), (pile, 2)], backend="host", dtype="float64")
    sim.forward()
    assert sim.groups[1].contacts(1).ncon == oracle(pile, pile.qpos0).ncon > 0
    assert sim.groups[0].contacts(1).ncon == oracle(ant(), ant().qpos0).ncon
    sim.groups[1].reset([0])
    sim.reset()
    assert sim.groups[1].time.tolist() == [0, 0]


# ----------------------------------------------------------------------------------------------------- insight


def test_traces_say_what_ran_when(tmp_path: Path) -> None:
    sim = rolling(shards=2)
    trace = sim.schedule.trace_step()
    assert len(trace.events) == len(sim.schedule.kernel_list) > 0
    assert {e.name for e in trace.events} == {e.name for e in sim.schedule.kernel_list}
    assert all(e.end >= e.start for e in trace.events)
    trace.to_chrome(tmp_path / "trace.json")
    assert len(json.loads((tmp_path / "trace.json").read_text())["traceEvents"]) >= len(trace.events)


def test_a_whole_step_can_be_traced_as_it_is_issued() -> None:
    sim, other = rolling(emission="whole"), rolling()
    assert len(sim.schedule.trace_step(whole_steps=True).events) == sim.groups[0].num_shards
    assert len(sim.schedule.trace_step().events) > sim.groups[0].num_shards
    other.step(2)
    assert snapshot(sim) == snapshot(other)


def test_a_traced_step_is_a_step() -> None:
    sim, other = rolling(), rolling()
    sim.schedule.trace_step()
    other.step()
    assert snapshot(sim) == snapshot(other)


def test_synchronising_and_closing() -> None:
    sim = rolling()
    sim.step()
    sim.synchronize()
    qpos = sim.qpos
    before = np.array(qpos)
    sim.close()
    np.testing.assert_array_equal(qpos, before)  # an array that is held keeps its memory
