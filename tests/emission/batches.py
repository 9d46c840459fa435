"""Batches of many models, and the bits of their states, for tests of emission."""

from __future__ import annotations

from typing import Any

import pytest

from simengine import Simulation
from simengine.emission import store
from simengine.state.fields import FIELD
from tests.helpers.oracle import sample
from tests.models import OWN, gymnasium_path

WORLDS = 5
STATE = ("qpos", "qvel", "act", "qacc_warmstart", "nstep", "world_status")
KEEP = ("cfrc_ext", "sensordata", "qfrc_actuator", "energy", "cacc", "subtree_linvel", "qacc", "solver_niter")


def source(name: str) -> Any:
    return OWN.get(name) or gymnasium_path(name)


def batch(names: tuple[str, ...], **options: Any) -> Simulation:
    sim = Simulation([(source(name), WORLDS) for name in names], backend="host", on_nonfinite="freeze", **options)
    for name, group in zip(names, sim.groups, strict=True):
        states = sample(name)
        group.set_state(qpos=states.qpos[:WORLDS], qvel=states.qvel[:WORLDS])
    return sim


def bits(sim: Simulation, fields: tuple[str, ...] = STATE) -> list[bytes]:
    return [g.to_host(g.field(n)).tobytes() for g in sim.groups for n in fields if FIELD[n].space == "world"]


def with_room(monkeypatch: pytest.MonkeyPatch, entries: int) -> None:
    """Let arenas start with a capacity of `entries` contacts and rows."""
    monkeypatch.setattr(store, "first_entries", lambda *_: entries)
