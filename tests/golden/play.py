"""Play a golden case: make its batch, step it and hash it. No other file of `tests.golden` calls the engine."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import mujoco
import numpy as np

from simengine import Simulation
from tests.golden.cases import CHUNK, CHUNKS, WORLDS, Case

STATE = ("qpos", "qvel", "act", "qacc_warmstart")


class Outcome(NamedTuple):
    """What came out of a case.

    Attributes:
        hash: first 16 hexadecimal digits of the SHA-256 of the last states.
        contacts, rows: largest number at the end of a chunk, over all worlds.
        speed: largest number in the last `qvel` [m/s, rad/s].
        apart: whether the last states of the worlds of a group all differ.
        finite: whether all numbers of the last states are finite.
    """

    hash: str
    contacts: int
    rows: int
    speed: float
    apart: bool
    finite: bool


def assert_moves(outcome: Outcome, case: Case) -> None:
    """Assert that the worlds move apart, and touch what the case says. A hash of worlds at rest would guard nothing."""
    assert outcome.finite
    assert outcome.apart
    assert outcome.speed > 0.5
    assert outcome.contacts >= case.contacts
    assert outcome.rows >= max(1, case.rows)


def play(case: Case, backend: str, executor: str, dtype: str, shards: int | None = None) -> Outcome:
    """Take all steps of a case and hash the result.

    The hash covers, for each group, qpos, qvel, act, qacc_warmstart, time and the fields in `keep` after the last step,
    and qacc after one more evaluation. Random numbers depend only on the case.
    """
    models = [source() for source in case.sources]
    batch = [(mj, WORLDS) for mj in models]
    rng = np.random.default_rng(17)
    sim = Simulation(batch, backend=backend, executor=executor, dtype=dtype, shards=shards, keep=case.keep)
    try:
        for group, mj in zip(sim.groups, models, strict=True):
            group.set_state(**_first_state(mj, rng))
            _set_params(group, mj, case, np.arange(WORLDS), rng)
        contacts, rows = [0], [0]
        for chunk in range(CHUNKS):
            for index, mj in enumerate(models):
                _prepare(sim.groups[index], mj, case, (chunk, index), rng)
            controls = [_controls(mj, rng) for mj in models]
            sim.step(CHUNK, ctrl=controls if len(models) > 1 else controls[0])
            counts = [sim.schedule.counts(index) for index in range(len(models))]
            contacts.append(sum(each["ncon"] for each in counts))
            rows.append(sum(each["nefc"] for each in counts))
        return _outcome(sim, case, max(contacts), max(rows))
    finally:
        sim.close()


def _prepare(group: Any, mj: mujoco.MjModel, case: Case, place: tuple[int, int], rng: np.random.Generator) -> None:
    """Give a group its inputs before a chunk. `place` is the pair of the chunk's and the group's index."""
    chunk = place[0]
    if chunk in case.resets:
        odd = np.arange(1, WORLDS, 2)
        group.reset(odd)
        group.set_state(odd, qvel=rng.uniform(-0.5, 0.5, (len(odd), mj.nv)))
    if chunk == CHUNKS // 2:
        _set_params(group, mj, case, np.array([0, 3]), rng)
    if inputs := _inputs(mj, case, rng):
        group.set_state(**inputs)
    group.paused = place in case.pauses


def _set_params(group: Any, mj: mujoco.MjModel, case: Case, worlds: np.ndarray, rng: np.random.Generator) -> None:
    if case.params:
        group.set_params(worlds, **{name: _drawn(mj, name, len(worlds), rng) for name in case.params})


def _outcome(sim: Simulation, case: Case, contacts: int, rows: int) -> Outcome:
    """Return the hash of the last states, and figures that tell whether the case tested enough."""
    found: list[np.ndarray] = []
    for group in sim.groups:
        found += [np.array(group.to_host(group.field(name))) for name in (*STATE, *case.keep)]
        found.append(np.array(group.time))
    qpos, qvel = ([np.array(group.to_host(group.field(name))) for group in sim.groups] for name in ("qpos", "qvel"))
    sim.forward()
    found += [np.array(group.to_host(group.field("qacc"))) for group in sim.groups]
    return Outcome(
        hash_of(found),
        contacts,
        rows,
        speed=max(float(np.abs(values).max()) for values in qvel),
        apart=all(len(np.unique(values, axis=0)) == WORLDS for values in qpos),
        finite=all(bool(np.isfinite(array).all()) for array in found),
    )


def _first_state(mj: mujoco.MjModel, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Initial states with small random differences between worlds. Values are exact in float32."""
    changes = {
        "qpos": (np.array(mj.qpos0), 0.02, mj.nq),
        "qvel": (np.zeros(mj.nv), 0.5, mj.nv),
        "act": (np.zeros(mj.na), 0.2, mj.na),
    }
    drawn = {name: about + rng.uniform(-by, by, (WORLDS, size)) for name, (about, by, size) in changes.items()}
    return {name: values.astype(np.float32).astype(np.float64) for name, values in drawn.items()}


def _controls(mj: mujoco.MjModel, rng: np.random.Generator) -> np.ndarray | None:
    """Random controls of each step of a chunk, (CHUNK, WORLDS, nu), within the range of limited actuators."""
    low, high = np.full(mj.nu, -1.0), np.full(mj.nu, 1.0)
    limited = mj.actuator_ctrllimited.astype(bool)
    low[limited], high[limited] = mj.actuator_ctrlrange[limited].T
    return rng.uniform(low, high, (CHUNK, WORLDS, mj.nu)) if mj.nu else None


def _inputs(mj: mujoco.MjModel, case: Case, rng: np.random.Generator) -> dict[str, Any]:
    """Other inputs of the worlds in a chunk: poses of mocap bodies, and which equality constraints are active."""
    inputs: dict[str, Any] = {}
    if mj.nmocap:
        body = np.flatnonzero(mj.body_mocapid >= 0)[np.argsort(mj.body_mocapid[mj.body_mocapid >= 0])]
        inputs["mocap_pos"] = mj.body_pos[body] + rng.uniform(-0.05, 0.05, (WORLDS, mj.nmocap, 3))
        inputs["mocap_quat"] = mj.body_quat[body] + rng.uniform(-0.1, 0.1, (WORLDS, mj.nmocap, 4))
    if case.equalities:
        inputs["eq_active"] = rng.uniform(size=(WORLDS, mj.neq)) < 0.7
    return inputs


def _drawn(mj: mujoco.MjModel, name: str, worlds: int, rng: np.random.Generator) -> np.ndarray:
    """Random values of a parameter, within a fifth of the model's. A body's moments of inertia share one factor."""
    own = np.array(getattr(mj if hasattr(mj, name) else mj.opt, name), dtype=np.float64)
    factors = rng.uniform(0.8, 1.2, (worlds, *own.shape))
    if name == "body_inertia":
        factors[:] = factors[..., :1]
    return own * factors


def hash_of(arrays: list[np.ndarray]) -> str:
    """First 16 hexadecimal digits of the SHA-256 of the numbers' bytes."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]
