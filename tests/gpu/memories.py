"""Memories with the states of a case, and with the input fields of every stage."""

from __future__ import annotations

from functools import cache

import numpy as np

from simengine.state.fields import FIELD, FIELDS
from tests.gpu.cases import case
from tests.stages.harness import Memory
from tests.stages.harness_chain import run_chain

RUNGE_KUTTA = tuple(n for n in FIELD if n.startswith("rk_"))


def loaded(name: str, dtype: str, contacts: int, rows: int) -> Memory:
    """A memory with a case's states, random warm starts, and everything else poisoned.

    Only actuator_moment starts as zeros. On a GPU nobody writes its entries that are not in the model table.
    """
    states = case(name).states
    n = len(states["qpos"])
    memory = Memory(case(name).model, dtype, n, contacts, rows)
    warm = np.random.default_rng(7).normal(size=(n, memory.model.nv)).astype(np.float32)
    counters = {"nstep": np.arange(n, dtype=np.int32), "world_status": np.zeros(n, np.int32)}
    memory.set(states | counters | {"qacc_warmstart": warm})
    memory.arrays["actuator_moment"].fill(0)
    return memory


@cache
def arena_sizes(name: str) -> tuple[int, int]:
    """Contacts and rows of all states of a case, as MuJoCo counts them."""
    fields = case(name).fields
    return sum(len(f["contact_dist"]) for f in fields), sum(len(f["efc_D"]) for f in fields)


def start(name: str, dtype: str, rk_stage: int) -> Memory:
    """A memory at the start of an evaluation, with arenas that fit exactly. rk_stage > 0 is in the middle of a step."""
    memory = loaded(name, dtype, *arena_sizes(name))
    if rk_stage:
        fill_runge_kutta(memory)
    return memory


def fill_runge_kutta(memory: Memory) -> None:
    """Put random numbers where a step by Runge and Kutta keeps what it has so far."""
    rng = np.random.default_rng(11)
    for field in RUNGE_KUTTA:
        memory.own(field)[...] = rng.normal(size=memory.own(field).shape).astype(np.float32)


@cache
def _reference(name: str) -> dict[str, np.ndarray]:
    """Every field of all states, computed by the host's chain of single stages in double precision."""
    memory = start(name, "float64", 0)
    run_chain(memory)
    assert tuple(int(n) for n in memory.own("totals")[:2]) == arena_sizes(name)
    return {field.name: memory.own(field.name).copy() for field in FIELDS}


def prepared(name: str, dtype: str) -> Memory:
    """A memory with every field of a forward evaluation, rounded to the precision."""
    memory = start(name, dtype, 0)
    memory.set({k: v for k, v in _reference(name).items() if k not in RUNGE_KUTTA})
    fill_runge_kutta(memory)
    return memory


def widened(memory: Memory) -> Memory:
    """A copy in double precision. Poisoned entries stay poisoned."""
    wide = Memory(memory.model, "float64", memory.num_worlds, memory.capacity["contact"], memory.capacity["row"])
    for name in FIELD:
        wide.arrays[name][...] = memory.arrays[name]
    return wide


def owners(memory: Memory, name: str) -> np.ndarray:
    """World of each entry of the shard's part of a field, from its first axis."""
    counter = {"contact": "ncon", "row": "nefc", "jacobian": "nefc"}.get(FIELD[name].space)
    entries = len(memory.own(name))
    return np.arange(entries) if counter is None else np.repeat(np.arange(memory.num_worlds), memory.own(counter))
