"""Chains: custom calls on a CPU in which programs run before and after calls of the engine; see `chain_host.cpp`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from simengine.xla.calls import Call, registered
from simengine.xla.functions import undifferentiable
from simengine.xla.handler_build import PROGRAMS_RUN_IN
from simengine.xla.invweights import WeightsCall
from simengine.xla.lanes import OPERATIONS, enumeration
from simengine.xla.library import CHAIN, TARGET
from simengine_scheduler.native.cache import digest

__all__ = ["CHAIN", "OPERATIONS", "EngineCall", "call_of", "on_host", "run_chain"]

EngineCall = Call | WeightsCall
"""Steps of worlds, their dynamics, or what follows from their masses."""


def call_of(params: Mapping[str, Any]) -> EngineCall | None:
    """The engine's call that a traced custom call with these parameters makes; None if it makes none."""
    kind = dict(params.get("attributes", ())).get("kind")
    if params.get("target_name") != TARGET or kind is None:
        return None
    found: EngineCall = registered(int(kind))
    return found


def on_host(run: Callable[..., list[jax.Array]]) -> Callable[..., list[jax.Array]]:
    """A function that makes steps on a CPU, with an error as its derivative."""
    return undifferentiable("host", run)


def run_chain(
    kinds: Sequence[int],
    program: np.ndarray,
    arrays: Sequence[jax.Array],
    results: Sequence[jax.ShapeDtypeStruct],
    places: dict[int, int],
) -> list[jax.Array]:
    """What programs and the engine's steps between them make of arrays of worlds (n, ...); see `chain_host.cpp`.

    Args:
        kinds: numbers of the engine's calls.
        program: the programs, int32, one before each call and one after the last.
        arrays: what they load.
        results: shapes and types of what they store.
        places: for arrays over which they store results of their shapes and types, the numbers of these.
    """
    run = jax.ffi.ffi_call(CHAIN, list(results), input_output_aliases=places)
    number = int(digest(repr(kinds), program.tobytes().hex(), _meaning())[:15], 16)
    return list(run(*arrays, kinds=np.array(kinds, np.int64), number=np.int64(number), program=program))


def _meaning() -> str:
    """What the numbers of a program mean.

    It is part of a chain's number, since XLA's cache of compiled programs may have chains of another version.
    """
    folder = Path(__file__).parent
    return digest(enumeration(), *((folder / f"{name}.cpp").read_text() for name in PROGRAMS_RUN_IN))
