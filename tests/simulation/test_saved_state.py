"""Saved states: a simulation that goes on from one computes the bits of a simulation that was never interrupted."""

from __future__ import annotations

import gc
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simengine import Model, NonFiniteError, Simulation, load_model
from simengine.backends.select import available_backends
from tests.helpers.islands import heap

BACKENDS = [name for name in ("host", "jax") if not available_backends()[name]]
MOVING = """
<mujoco model="moving">
  <worldbody>
    <geom type="plane" size="4 4 1"/>
    <body name="hand" mocap="true" pos="0 0 .8"/>
    <body name="arm" pos="0 0 .5">
      <joint name="hinge" axis="0 1 0" damping=".05"/>
      <geom type="capsule" fromto="0 0 0 .4 0 0" size=".05" friction=".7"/>
      <body pos=".4 0 0"><joint axis="0 1 0" armature=".01"/><geom size=".08"/></body>
    </body>
    <body pos="0 1 .3"><freejoint/><geom size=".1"/></body>
  </worldbody>
  <equality><connect body1="hand" body2="arm" anchor="0 0 -.3"/></equality>
  <actuator><general joint="hinge" dyntype="filter" dynprm=".1" gainprm="2"/></actuator>
</mujoco>
"""
PENDULUM = (
    "<mujoco model='p'><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='0 0 -1'/></body></worldbody></mujoco>"
)


@cache
def moving() -> Model:
    """One model for all simulations, which then share what JAX compiles."""
    return load_model(MOVING)


def prepared(backend: str = "host", dtype: str = "float32", **options: Any) -> Simulation:
    """Three worlds in the middle of their motion, with every kind of state that lasts from step to step."""
    sim = Simulation(moving(), 3, backend=backend, dtype=dtype, **options)
    rng = np.random.default_rng(1)
    sim.set_params(worlds=[1], body_mass=sim.model.body_mass * 1.3)
    sim.set_params(dof_damping=rng.uniform(0.1, 0.2, (3, sim.model.nv)))
    sim.set_params(worlds=[0, 2], geom_friction=rng.uniform(0.2, 0.9, (2, sim.model.ngeom, 3)))
    sim.step(3, ctrl=rng.uniform(-1, 1, (3, 1)))
    sim.set_state(
        qfrc_applied=rng.uniform(-1, 1, (3, sim.model.nv)),
        xfrc_applied=rng.uniform(-1, 1, (3, sim.model.nbody, 6)),
        mocap_pos=rng.uniform(0.6, 0.9, (3, 1, 3)),
        eq_active=[[1], [0], [1]],
    )
    sim.reset(worlds=[2])
    sim.step(4, ctrl=rng.uniform(-1, 1, (3, 1)))
    return sim


def bits(sim: Simulation) -> list[dict[str, dict[str, tuple[Any, ...]]]]:
    return [
        {part: {name: (a.dtype.name, a.shape, a.tobytes()) for name, a in own.items()} for part, own in group.items()}
        for group in sim.full_state()
    ]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_loaded_simulation_goes_on_with_the_same_bits(backend: str, tmp_path: Path) -> None:
    sim = prepared(backend)
    sim.save_state(tmp_path / "state")
    other = Simulation(moving(), 3, backend=backend)
    other.load_state(tmp_path / "state")
    assert bits(other) == bits(sim)
    assert other.time.tolist() == sim.time.tolist()
    sim.step(9)
    other.step(9)
    assert bits(other) == bits(sim)


@pytest.mark.parametrize("emission", ["counted", "whole"])
def test_float64_and_every_emission_have_the_same_bits(emission: str, tmp_path: Path) -> None:
    sim = prepared(dtype="float64")
    sim.save_state(tmp_path / "state.npz")
    other = Simulation(moving(), 3, backend="host", dtype="float64", emission=emission, shards=2)
    other.load_state(tmp_path / "state.npz")
    sim.step(20)
    other.step(20)
    assert bits(other) == bits(sim)


def test_worlds_of_islands_go_on_with_the_same_bits(tmp_path: Path) -> None:
    model = load_model(heap(12))
    sim = Simulation(model, 2, backend="host")
    sim.set_params(worlds=[1], body_mass=model.body_mass * 1.1)
    sim.step(60)
    sim.save_state(tmp_path / "state.npz")
    other = Simulation(model, 2, backend="host")
    other.load_state(tmp_path / "state.npz")
    sim.step(20)
    other.step(20)
    assert bits(other) == bits(sim)


def test_worlds_without_parameters_of_their_own_keep_the_model_to_the_last_bit() -> None:
    """Parameters that were only read, and worlds for which none was set, have the compiled model's numbers."""
    sim = Simulation(moving(), 3, backend="host")
    sim.params("dof_armature")
    sim.set_params(worlds=[1], body_mass=sim.model.body_mass * 1.5)
    plain = Simulation(moving(), 3, backend="host")
    other = sim.copy()
    other.step(30)
    plain.step(30)
    assert other.qpos[0].tobytes() == plain.qpos[0].tobytes()
    assert other.qpos[1].tobytes() != plain.qpos[1].tobytes()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_state_without_parameters_takes_away_those_that_are_there(backend: str) -> None:
    plain = Simulation(moving(), 3, backend=backend)
    state = plain.full_state()
    sim = prepared(backend)
    sim.set_full_state(state)
    assert sim.params("body_mass")[1].tolist() == plain.params("body_mass")[1].tolist()
    sim.step(8)
    plain.step(8)
    assert bits(sim) == bits(plain)


def test_paused_groups_and_frozen_worlds_are_saved(tmp_path: Path) -> None:
    pairs = [(load_model(MOVING), 3), (load_model(PENDULUM), 2)]
    sim = Simulation(pairs, backend="host")
    state = sim.full_state()
    state[0]["fields"]["qvel"][1, 0] = np.nan
    sim.set_full_state(state)
    with pytest.raises(NonFiniteError) as caught:
        sim.step(2)
    assert caught.value.worlds == (1,)
    sim.groups[1].paused = True
    sim.step(2)
    sim.save_state(tmp_path / "state.npz")
    other = Simulation(pairs, backend="host")
    other.load_state(tmp_path / "state.npz")
    assert [group.paused for group in other.groups] == [False, True]
    assert other.groups[0].reported.tolist() == [False, True, False]
    other.step(3)  # the frozen world is not reported again
    sim.step(3)
    assert bits(other) == bits(sim)
    assert [group.time.tolist() for group in other.groups] == [group.time.tolist() for group in sim.groups]


def test_a_paused_group_whose_frozen_worlds_are_reset_is_not_reported() -> None:
    sim = Simulation([(PENDULUM, 2), (PENDULUM, 1)], backend="host")
    good = sim.full_state()
    sim.groups[0].qvel[0] = np.nan  # type: ignore[index]
    with pytest.raises(NonFiniteError):
        sim.step()
    good[0]["flags"]["paused"] = np.array(True)
    sim.set_full_state(good)
    sim.step()
    assert sim.groups[1].time.tolist() == [sim.groups[1].model.opt.timestep]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_copy_is_equal_and_independent(backend: str) -> None:
    sim = prepared(backend, keep=("qacc",), on_nonfinite="freeze")
    other = sim.copy()
    assert (other.backend, other.dtype, other.keep) == (sim.backend, sim.dtype, sim.keep)
    before = bits(sim)
    other.step(2)
    assert bits(sim) == before
    sim.step(2)
    assert bits(other) == bits(sim)
    assert np.asarray(other.field("qacc")).tobytes() == np.asarray(sim.field("qacc")).tobytes()


def test_derived_fields_are_not_valid_in_a_state_that_was_set() -> None:
    sim = prepared()
    sim.forward()
    sim.set_full_state(sim.full_state())
    with pytest.raises(ValueError, match=r"call forward\(\)"):
        sim.field("qacc")


def test_a_state_is_a_pytree_of_jax_and_a_copy() -> None:
    jax = pytest.importorskip("jax")
    sim = prepared()
    state = jax.tree.map(lambda leaf: leaf.copy(), sim.full_state())
    before = bits(sim)
    sim.step(5)
    sim.set_full_state(state)
    assert bits(sim) == before


@pytest.mark.skipif(len(BACKENDS) < 2, reason="needs a C++ compiler")
def test_a_state_of_another_backend_agrees_within_rounding() -> None:
    sim = prepared("host")
    other = Simulation(moving(), 3, backend="jax")
    other.set_full_state(sim.full_state())
    sim.step(3)
    other.step(3)
    np.testing.assert_allclose(np.asarray(other.qpos), np.asarray(sim.qpos), atol=1e-5)


def test_an_interrupted_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.npz"
    sim = prepared()
    sim.save_state(path)
    old = path.read_bytes()

    def fails(file: Any, **_: Any) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", fails)
    with pytest.raises(KeyboardInterrupt):
        sim.save_state(path)
    assert path.read_bytes() == old
    assert [file.name for file in tmp_path.iterdir()] == ["state.npz"]


def test_saves_into_a_folder_of_the_import_path_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the working folder, whose time changes with each file."""
    monkeypatch.syspath_prepend(str(tmp_path))
    sim, objects = prepared(), list[int]()
    for number in range(24):
        sim.save_state(tmp_path / "state.npz")
        os.utime(tmp_path, (number, number))
        gc.collect()
        objects.append(len(gc.get_objects()))
    assert objects[-1] - objects[3] < 20


@pytest.mark.parametrize(
    ("model", "worlds", "dtype", "message"),
    [
        (PENDULUM, 3, "float32", "holds the state of 3 x 'moving' and this simulation is 3 x 'p'"),
        (MOVING, 4, "float32", "holds the state of 3 x 'moving' and this simulation is 4 x 'moving'"),
        (MOVING, 3, "float64", "numbers of type float32 and this simulation computes in float64"),
        (MOVING.replace("friction='.7'", "").replace('".08"', '".09"'), 3, "float32", "another model 'moving'"),
    ],
)
def test_a_file_of_another_simulation_is_refused(
    model: str, worlds: int, dtype: str, message: str, tmp_path: Path
) -> None:
    prepared().save_state(tmp_path / "state.npz")
    sim = Simulation(model, worlds, backend="host", dtype=dtype)
    before = bits(sim)
    with pytest.raises(ValueError, match=message):
        sim.load_state(tmp_path / "state.npz")
    assert bits(sim) == before


def test_files_that_are_no_saved_state_are_refused(tmp_path: Path) -> None:
    sim, path = prepared(), tmp_path / "state.npz"
    with pytest.raises(FileNotFoundError, match="no saved state at"):
        sim.load_state(path)
    sim.save_state(path)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"text", whole[:2000] + b"\xff" * 50 + whole[2050:]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is not a complete saved state"):
            sim.load_state(path)
    with pytest.raises(FileNotFoundError, match="make the folder first"):
        sim.save_state(tmp_path / "none" / "state.npz")
    np.savez(path, qpos=np.zeros(3))
    with pytest.raises(ValueError, match="lacks 'simengine_state'"):
        sim.load_state(path)
    np.savez(path, simengine_state=2, engine_version="9.9")
    with pytest.raises(ValueError, match=r"saved by simengine 9\.9 in format 2"):
        sim.load_state(path)
    np.save(tmp_path / "array.npy", np.zeros(3))
    with pytest.raises(ValueError, match="is not a complete saved state"):
        sim.load_state(tmp_path / "array.npy")


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        *(("simengine_state", value) for value in (np.array([1, 1]), np.array("x"), np.array(1.5))),
        *(("models", value) for value in (np.array("moving"), np.array(3), np.array(["moving", "moving"]))),
        *(("fingerprints", value) for value in (np.array([]), np.array([["x"]]))),
    ],
)
def test_a_header_of_another_form_is_refused(entry: str, value: np.ndarray, tmp_path: Path) -> None:
    sim, path = prepared(), tmp_path / "state.npz"
    sim.save_state(path)
    with np.load(path) as file:
        entries = dict(file)
    np.savez(path, **{**entries, entry: value})  # type: ignore[arg-type]
    before = bits(sim)
    with pytest.raises(ValueError, match="is not a complete saved state, because it"):
        sim.load_state(path)
    assert bits(sim) == before


def test_a_flipped_bit_is_found(tmp_path: Path) -> None:
    """Or it changes nothing, as in the date of the file."""
    file, sim = tmp_path / "state.npz", prepared()
    sim.save_state(file)
    saved, expected = file.read_bytes(), bits(sim)
    refused = 0
    for place in np.random.default_rng(0).integers(8 * len(saved), size=300):
        damaged = bytearray(saved)
        damaged[place // 8] ^= 1 << place % 8
        file.write_bytes(damaged)
        sim.reset()
        try:
            sim.load_state(file)
        except ValueError:
            refused += 1
        else:
            assert bits(sim) == expected
    assert refused > 100


def test_states_that_do_not_fit_are_refused_and_change_nothing() -> None:
    sim = prepared()
    before = bits(sim)

    def refused(message: str, part: str, name: str, value: Any) -> None:
        state = sim.full_state()
        if value is None:
            del state[0][part][name]
        else:
            state[0][part][name] = value
        with pytest.raises(ValueError, match=message):
            sim.set_full_state(state)
        assert bits(sim) == before

    refused("lacks 'qpos'", "fields", "qpos", None)
    refused(r"unknown entry 'qpso' \(did you mean 'qpos'\?\)", "fields", "qpso", np.zeros(3))
    refused("qpos of type float64, expected float32", "fields", "qpos", np.zeros((3, sim.model.nq)))
    refused(r"qpos of shape \(2, ", "fields", "qpos", np.zeros((2, sim.model.nq), np.float32))
    refused("not a parameter that worlds may differ in", "params", "body_maß", np.zeros((3, 1)))
    refused("body_mass of shape", "params", "body_mass", np.zeros((3, 1)))
    refused("the table field body_mass of shape", "table", "body_mass", np.zeros(3))
    refused("world_status of 5, expected 0 to 4", "fields", "world_status", np.array([0, 5, 0], np.int32))
    refused("paused of type float64, expected truth values", "flags", "paused", np.array(np.nan))
    refused("reported of type <U5, expected truth values", "flags", "reported", np.array(["False"] * 3))
    refused("body_mass of type <U1, expected real numbers", "params", "body_mass", np.full((3, sim.model.nbody), "1"))
    refused("body_mass of type complex128", "table", "body_mass", np.ones((3, sim.model.nbody), complex))
    with pytest.raises(ValueError, match=r"2 group\(s\) and the simulation has 1"):
        sim.set_full_state(sim.full_state() * 2)
