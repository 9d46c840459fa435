"""Pairs of geoms that a broadphase finds in every step: MuJoCo's contacts, and the bits of those of the pair table."""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import mujoco
import numpy as np
import pytest

from benchmarks.piles import settled
from simengine import Model, Simulation, UnsupportedModelError, check_model, load_model
from simengine.backends.host import HostBackend
from simengine.check.search import targets
from simengine.check.states import Sampler, State
from simengine.fuzz.generate import generate
from simengine.model import ModelTable, load_table
from simengine.model.blob import pack_models
from simengine.plan.issue import Issue, Issuing
from simengine.plan.memory import footprint
from simengine.plan.step_plan import plan_step
from simengine.zoo import pile_xml
from tests.helpers.medley import medley
from tests.models import OWN

DTYPES = ("float64", "float32")


@cache
def dropped(xml: str, steps: tuple[int, ...]) -> dict[str, np.ndarray]:
    """States that MuJoCo reaches in so many steps, exact in float32."""
    mj = mujoco.MjModel.from_xml_string(xml)
    data, found = mujoco.MjData(mj), []
    for step in range(max(steps) + 1):
        if step in steps:
            found.append([getattr(data, name).astype(np.float32).astype(np.float64) for name in ("qpos", "qvel")])
        mujoco.mj_step(mj, data)
    return {name: np.array([each[i] for each in found]) for i, name in enumerate(("qpos", "qvel"))}


def forced(mj: Any, found: bool) -> ModelTable:
    """The model with its pairs found anew, or listed."""
    model = load_table(mj)
    model.solve_by_islands(True)
    model.find_pairs(found)
    return model


def evaluated(
    model: ModelTable, start: dict[str, np.ndarray], dtype: str, backend: str = "host", **options: Any
) -> Simulation:
    """Worlds in the states, evaluated."""
    sim = Simulation(Model(model), len(start["qpos"]), backend=backend, dtype=dtype, **options)
    sim.set_state(**start)
    sim.forward()
    return sim


def assert_same_contacts(sims: list[Simulation], exact: bool = True) -> int:
    """The same contacts and rows in both simulations, bit for bit if `exact`; returns how many contacts there are."""
    number = 0
    for world in range(sims[0].num_worlds):
        contacts, rows = ([getattr(sim, what)(world) for sim in sims] for what in ("contacts", "constraints"))
        for name, ours, theirs in zip(contacts[0]._fields, *contacts, strict=True):
            np.testing.assert_array_equal(ours, theirs, err_msg=f"{name} of world {world}")
        for name in ("type", "id", "J", "pos", "margin", "D"):
            ours, theirs = (getattr(each, name) for each in rows)
            tolerance = 0 if exact or name in ("type", "id") else 1e-6
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance, err_msg=f"{name} of world {world}")
        number += contacts[0].ncon
    return number


def states(model: Model, sampler: Sampler) -> list[State]:
    """States at random, and thrown into each other."""
    pairs = [pair for found in targets(model).pairs.values() for pair in found.tolist()]
    thrown = [sampler.thrown(*pair) for pair in sampler.rng.permutation(pairs)[:3].tolist()] if pairs else []
    return [*(sampler.random() for _ in range(2)), *thrown]


@pytest.mark.slow
def test_generated_models_have_the_contacts_of_their_tables() -> None:
    compared = contacts = 0
    for seed in range(24):
        try:
            listed = load_model(generate(seed))
        except (UnsupportedModelError, ValueError):
            continue
        overrides = listed.opt.enableflags & int(mujoco.mjtEnableBit.mjENBL_OVERRIDE)  # such models have tables
        if listed.nv == 0 or listed.opt.noslip_iterations or overrides:
            continue
        drawn = states(listed, Sampler(listed.mj, seed))
        start = {name: np.array([getattr(state, name) for state in drawn]) for name in ("qpos", "qvel")}
        sims = [evaluated(forced(listed.mj, found), start, "float64", on_nonfinite="freeze") for found in (False, True)]
        compared += 1
        contacts += assert_same_contacts(sims)
    assert compared > 8
    assert contacts > 30


@pytest.mark.parametrize("name", ["terrain", "rubble"])
def test_height_fields_and_meshes_have_the_contacts_of_their_tables(name: str) -> None:
    mj, start = load_table(OWN[name]).mj, dropped(OWN[name], (50, 120, 200))
    sims = [evaluated(forced(mj, found), start, "float64") for found in (True, False)]
    assert assert_same_contacts(sims) > 6


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("midphase", ["enable", "disable"])
def test_everything_that_decides_over_pairs_is_heeded(midphase: str, dtype: str) -> None:
    xml = medley().replace("<worldbody>", f'<option><flag midphase="{midphase}"/></option><worldbody>', 1)
    mj = mujoco.MjModel.from_xml_string(xml)
    start = dropped(medley(), (0, 30, 120))
    sims = [evaluated(forced(mj, found), start, dtype) for found in (True, False)]
    assert assert_same_contacts(sims, exact=dtype == "float64") > 100
    data = mujoco.MjData(mj)
    for world in range(len(start["qpos"])):
        data.qpos, data.qvel = (start[name][world] for name in ("qpos", "qvel"))
        mujoco.mj_forward(mj, data)
        ours = sims[0].contacts(world)
        np.testing.assert_array_equal(np.stack([ours.geom1, ours.geom2], axis=1), data.contact.geom.reshape(-1, 2))
        # rounding decides on the order of the corners of flat contacts: those of a pair are compared by depth
        pair = np.cumsum(np.any(np.diff(data.contact.geom.reshape(-1, 2), axis=0, prepend=-1), axis=1))
        dist, expected = (found[np.lexsort((found, pair))] for found in (ours.dist, data.contact.dist))
        np.testing.assert_allclose(dist, expected, rtol=0, atol={"float64": 1e-6, "float32": 1e-4}[dtype])


@cache
def heap(kind: str = "mixed") -> tuple[ModelTable, dict[str, np.ndarray]]:
    """150 bodies in a bin."""
    pile = settled(150, kind, 120)
    exact = {n: pile.state[n].astype(np.float32).astype(np.float64) for n in ("qpos", "qvel")}
    return load_table(pile.mj), exact


@pytest.mark.parametrize("dtype", DTYPES)
def test_contacts_of_a_heap_are_mujocos(dtype: str) -> None:
    model, state = heap()
    assert model.finds_pairs
    assert model.ncand == 0
    data = mujoco.MjData(model.mj)
    data.qpos, data.qvel = state["qpos"], state["qvel"]
    mujoco.mj_forward(model.mj, data)
    sim = evaluated(model, {name: value[None] for name, value in state.items()}, dtype)
    ours = sim.contacts(0)
    assert ours.ncon == data.ncon > 150
    np.testing.assert_array_equal(np.stack([ours.geom1, ours.geom2], axis=1), data.contact.geom.reshape(-1, 2))
    atol = {"float64": 1e-12, "float32": 1e-5}[dtype]
    np.testing.assert_allclose(ours.dist, data.contact.dist, rtol=0, atol=atol)
    np.testing.assert_allclose(ours.pos, data.contact.pos, rtol=0, atol=atol)
    np.testing.assert_allclose(ours.frame.reshape(-1, 9), data.contact.frame, rtol=0, atol=100 * atol)
    np.testing.assert_array_equal(ours.efc_address, data.contact.efc_address)


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_fields_agree_with_mujoco(dtype: str) -> None:
    xml = pile_xml(66, "capsule").replace("<geom type", '<site name="on" type="box" size="1 1 0.2"/><geom type', 1)
    xml = xml.replace("</mujoco>", '<sensor><touch site="on"/></sensor></mujoco>')
    assert load_table(xml).finds_pairs
    report = check_model(xml, num_states=8, num_steps=10, backend="host", dtype=dtype)
    assert report.passed, report


def test_what_follows_from_contacts_is_that_of_the_table() -> None:
    """Forces on bodies, sensors of contacts, and actuators that pull at them."""
    mj, start = mujoco.MjModel.from_xml_string(medley()), dropped(medley(), (0, 30, 120))
    sims = [evaluated(forced(mj, found), start, "float64") for found in (True, False)]
    for sim in sims:
        sim.set_state(ctrl=np.ones(1), qvel=start["qvel"])
        sim.forward()
    for name in ("actuator_moment", "actuator_velocity", "qacc", "cfrc_ext", "sensordata"):
        ours, theirs = (np.asarray(sim.field(name)) for sim in sims)
        assert theirs.any()
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9 * np.abs(theirs).max(), err_msg=name)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_setting_gives_the_same_bits(dtype: str) -> None:
    model, results = forced(medley(), True), []
    for options in ({"executor": "serial", "shards": 1}, {"executor": "shuffled", "shards": 3}, {"shards": 2}):
        sim = evaluated(model, dropped(medley(), (0, 30, 120)), dtype, **options)
        sim.step(10)
        results.append(np.array(sim.qpos))
        sim.close()
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


def test_worlds_may_differ_in_friction_and_size_and_fail_alone() -> None:
    mj = forced(medley(), True).mj
    sims = []
    start = dropped(medley(), (30, 60, 120))
    for found in (True, False):
        sim = Simulation(Model(forced(mj, found)), 3, backend="host", dtype="float64", on_nonfinite="freeze")
        sim.set_params([1], geom_friction=1.5 * mj.geom_friction, geom_size=1.1 * mj.geom_size)
        sim.set_state(**start)
        sim.forward()
        sims.append(sim)
    assert assert_same_contacts(sims) > 100
    assert sims[0].contacts(1).ncon > 0
    velocity = start["qvel"].copy()
    velocity[2] = np.nan
    for sim in sims:
        np.asarray(sim.qvel)[2] = np.nan
        sim.step(2)
    assert (np.asarray(sims[0].field("world_status")) != 0).tolist() == [False, False, True]
    np.testing.assert_allclose(sims[0].qpos[:2], sims[1].qpos[:2], rtol=0, atol=1e-9)


def test_a_model_of_many_geoms_is_small_and_loads_at_once() -> None:
    mj = mujoco.MjModel.from_xml_string(pile_xml(1200, "mixed"))
    begin = time.perf_counter()
    model = load_table(mj)
    assert time.perf_counter() - begin < 5
    _, ints, reals = pack_models([model], "float32")
    assert ints.nbytes + reals.nbytes < 4e6
    plan = plan_step(model, 1, HostBackend(), "float32", Issuing("serial", "counted", Issue.COUNTED, True))
    assert footprint(plan, frozenset()).world < 4e6
    with pytest.raises(UnsupportedModelError, match=r"pile_mixed_1200.*pairs of geoms in JAX"):
        Simulation(Model(model), 1, backend="jax")


def test_worlds_solved_as_one_problem_have_a_table() -> None:
    model = forced(mujoco.MjModel.from_xml_string(medley(4)), True)
    model.solve_by_islands(False)
    assert not model.finds_pairs
    assert model.ncand > 0
    with pytest.raises(ValueError, match="medley.*one problem"):
        model.find_pairs(True)


def test_jax_is_given_a_table() -> None:
    mj = mujoco.MjModel.from_xml_string(medley(4))
    found, listed = forced(mj, True), forced(mj, False)
    given = found.with_candidates()
    assert (found.ncand, given.ncand) == (0, listed.ncand)
    assert given.nefc_max == listed.nefc_max
    for name, values in listed.arrays.items():
        np.testing.assert_array_equal(given.arrays[name], values, err_msg=name)


def test_arenas_of_pairs_are_counted_and_grow() -> None:
    model, state = heap()
    sim = Simulation(Model(model), 2, backend="host", shards=1)
    apart = np.tile(model.qpos0, (2, 1))
    apart[:, ::7] += 3.0 * np.arange(150)
    sim.set_state(qpos=apart)
    sim.forward()
    before = sim.nbytes()
    sim.set_state(qpos=state["qpos"], qvel=state["qvel"])
    sim.forward()
    found, needs = sim.schedule.counts()["ncon"], sim.groups[0].footprint()
    assert found > 300
    first = 2 * 64  # entries of the arenas of contacts and of their places
    assert sim.nbytes() - before > (found - first) * (needs.contact + needs.slot)
