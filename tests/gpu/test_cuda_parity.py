"""Fields, contacts, rows and steps against MuJoCo, and of the two backends against each other."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from simengine import Model, Simulation
from simengine.state.fields import FIELDS
from tests.gpu.cases import NAMES, case, coverage
from tests.gpu.compare import CUDA, TOLERANCE, Worst, both, cuda_only, to_host
from tests.helpers.oracle import CONTACT_FIELDS, ROW_FIELDS, STATE_FIELDS
from tests.physics.test_parity_steps import compiled, relative_errors, trajectory

names = pytest.mark.parametrize("name", NAMES)
on_both = pytest.mark.parametrize(
    ("backend", "name"),
    [
        *(("host", name) for name in ("dual", "heap", "crates")),  # tests/stages has the host's stages on all models
        *(pytest.param(*CUDA.values, name, marks=CUDA.marks) for name in NAMES),
    ],
)
dtypes = pytest.mark.parametrize("dtype", ["float64", "float32"])

WITHIN_SHARD = ("con_adr", "efc_adr", "efc_J_adr")
"""Addresses count from the start of a shard, and backends split batches differently."""

DERIVED = tuple(f.name for f in FIELDS if f.space == "world" and not f.name.startswith("rk_"))


@lru_cache(maxsize=2)
def forward(name: str, backend: str, dtype: str) -> Simulation:
    """The sampled states of a model after forward()."""
    model, states = case(name).model, case(name).states
    sim = Simulation(Model(model), num_worlds=len(states["qpos"]), backend=backend, dtype=dtype)
    sim.set_state(**states)
    sim.forward()
    return sim


@on_both
@dtypes
def test_fields_after_forward_are_mujocos(backend: str, name: str, dtype: str) -> None:
    sim, worst = forward(name, backend, dtype), Worst()
    assert len(case(name).fields) >= 100
    for field in (*STATE_FIELDS, "qM"):
        expected = np.stack([fields[field] for fields in case(name).fields])
        # forces between bodies are what is left of those on them, and no more exact than these
        outer = [np.abs(fields["cfrc_ext"]).max() if field == "cfrc_int" else 1.0 for fields in case(name).fields]
        worst.note(field, to_host(sim.field(field)), expected, np.maximum(1.0, outer))
    print(f"{name} {backend} {dtype}: {worst}")
    assert not worst.beyond(dtype)


@on_both
@dtypes
def test_contacts_and_rows_are_mujocos(backend: str, name: str, dtype: str) -> None:
    """As many as MuJoCo's, in its order."""
    sim, worst = forward(name, backend, dtype), Worst()
    for world, fields in enumerate(case(name).fields):
        contacts, rows = sim.contacts(world), sim.constraints(world)
        assert (contacts.ncon, rows.nefc) == (len(fields["contact_dist"]), len(fields["efc_D"])), f"world {world}"
        geoms = np.stack([contacts.geom1, contacts.geom2], axis=1)
        np.testing.assert_array_equal(geoms, fields["contact_geom"])
        for field in CONTACT_FIELDS:
            # one entry a world: errors are relative to the largest number of the state
            worst.note(f"contact_{field}", getattr(contacts, field)[None], fields[f"contact_{field}"][None])
        for field in ROW_FIELDS:
            worst.note(f"efc_{field}", getattr(rows, field)[None], fields[f"efc_{field}"][None])
    print(f"{name} {backend} {dtype}: {worst} over {dict(coverage(name))}")
    assert sim.schedule.counts()["ncon"] == sum(len(f["contact_dist"]) for f in case(name).fields)
    assert sim.schedule.counts()["nefc"] == sum(len(f["efc_D"]) for f in case(name).fields)
    assert not worst.beyond(dtype)


def test_the_states_hold_every_kind_of_contact_and_row() -> None:
    total = sum((coverage(name) for name in NAMES), start=coverage(NAMES[0]))
    kinds = ("plane-sphere", "plane-capsule", "sphere-sphere", "sphere-capsule", "capsule-capsule")
    assert all(total[kind] >= 50 for kind in (*kinds, "limits", "in gap", "free states")), total
    assert coverage("heap")["most rows"] > 128
    assert case("heap").model.nv > 32


@both
@dtypes
def test_a_step_from_a_thousand_states_is_mujocos(backend: str, dtype: str) -> None:
    """Each state of a MuJoCo trajectory of the ant is a world."""
    states = trajectory("ant")
    assert len(states.undecided) == 1000
    sim = Simulation(compiled("ant"), num_worlds=1000, backend=backend, dtype=dtype)
    sim.set_state(**states.before)
    sim.step()
    decided = ~states.undecided
    worst = {
        field: relative_errors(to_host(getattr(sim, field))[decided], states.after[field][decided]).max()
        for field in ("qpos", "qvel")
    }
    print(f"ant {backend} {dtype}: {worst} over {dict(states.coverage)}")
    assert states.undecided.mean() < 0.02
    assert max(worst.values()) <= TOLERANCE["step"][dtype], worst


def differences(ours: Simulation, theirs: Simulation) -> Worst:
    """Errors of every field of two simulations after forward()."""
    worst = Worst()
    for field in (f for f in DERIVED if f not in (*WITHIN_SHARD, "solver_niter")):
        worst.note(field, to_host(ours.field(field)), to_host(theirs.field(field)))
    for world in range(ours.num_worlds):
        for field, value in ours.contacts(world)._asdict().items():
            worst.note(f"contact_{field}", value[None], getattr(theirs.contacts(world), field)[None])
        for field, value in ours.constraints(world)._asdict().items():
            worst.note(f"efc_{field}", value[None], getattr(theirs.constraints(world), field)[None])
    return worst


def agreement(name: str) -> float:
    """How far two backends may be apart; the dual solver stops short of the optimum, where the order of sums shows."""
    return 1e-7 if case(name).model.solver == "solve_pgs" else 1e-9


@cuda_only
@names
def test_backends_agree_in_double_precision(backend: str, name: str) -> None:
    """Every field, contact and row of a forward evaluation."""
    worst = differences(forward(name, backend, "float64"), forward(name, "host", "float64"))
    print(f"{name}: {worst}")
    assert {k: v for k, v in worst.errors.items() if not v <= agreement(name)} == {}


@cuda_only
@names
def test_steps_agree_in_double_precision(backend: str, name: str) -> None:
    """The state after a step from each sampled state."""
    states, worst = case(name).states, Worst()
    sims = [
        Simulation(Model(case(name).model), len(states["qpos"]), backend=b, dtype="float64") for b in (backend, "host")
    ]
    for sim in sims:
        sim.set_state(**states)
        sim.step()
    for field in ("qpos", "qvel", "qacc_warmstart", "nstep", "world_status"):
        worst.note(field, *(to_host(sim.field(field)) for sim in sims))
    print(f"{name}: {worst}")
    assert {k: v for k, v in worst.errors.items() if not v <= agreement(name)} == {}
