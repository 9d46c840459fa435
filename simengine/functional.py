"""Steps and evaluations as pure functions of JAX: of one world in JAX alone, or of many worlds on the kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, overload

import numpy as np

from simengine.engines import jax_step
from simengine.engines.jax_step import Fields, State
from simengine.model.model import Model
from simengine.xla.functions import contact_capacity, make_batch_forward, make_batch_step
from simengine.xla.state import BatchState, initial_batch

__all__ = ["contact_capacity", "initial_state", "make_forward", "make_step"]


@overload
def initial_state(model: Model, dtype: Any = "float32", *, num_worlds: None = None) -> State: ...
@overload
def initial_state(model: Model, dtype: Any = "float32", *, num_worlds: int) -> BatchState: ...
def initial_state(model: Model, dtype: Any = "float32", *, num_worlds: int | None = None) -> State | BatchState:
    """The model's initial state: its reference configuration at rest, without applied forces, at time 0.

    Args:
        model: the model.
        dtype: "float32" or "float64"; the second needs JAX's 64-bit mode.
        num_worlds: None for the state of one world, which `make_step(model)` takes; else the state of that many worlds,
            which `make_step(model, backend=...)` takes.

    Raises:
        ModelError: `dtype` cannot hold the model's numbers.
    """
    model.table.check_precision(np.dtype(dtype).name)
    return jax_step.initial_state(model, dtype) if num_worlds is None else initial_batch(model, num_worlds, dtype)


@overload
def make_step(model: Model, derived: Literal[False] = False) -> Callable[..., State]: ...
@overload
def make_step(model: Model, derived: Literal[True]) -> Callable[..., tuple[State, Fields]]: ...
@overload
def make_step(
    model: Model,
    *,
    backend: str,
    num_worlds: int | None = None,
    steps: int = 1,
    keep: Iterable[str] = (),
    nconmax: int | None = None,
    njmax: int | None = None,
) -> Callable[..., Any]: ...
def make_step(
    model: Model,
    derived: bool = False,
    *,
    backend: str | None = None,
    num_worlds: int | None = None,
    steps: int = 1,
    keep: Iterable[str] = (),
    nconmax: int | None = None,
    njmax: int | None = None,
) -> Callable[..., Any]:
    """Make the time step of a model as a pure function, which works under `jit`, `vmap` and `lax.scan`.

    Without a backend it is the step of one world, written in JAX, which has derivatives:

        step(state, ctrl, params=None) -> State, or (State, fields) if `derived`

    With a backend it is the step of many worlds on the engine's kernels. XLA calls them through its foreign-function
    interface, on its own stream or threads, and no Python runs in between. It works under `shard_map` too, and has no
    derivative:

        step(state, ctrl, params=None) -> BatchState, or (BatchState, fields) with `keep`

    Args:
        model: the model.
        derived: without a backend, whether the step also returns derived fields; see `jax_step.make_step`.
        backend: "cuda", "host", "jax", or "auto" for the first of these that can run here; None for one world.
        num_worlds: with a backend, number of worlds for which memory is made at once. The step works for any number of
            worlds, each of which has memory of its own.
        steps: with a backend, number of steps of the model that one call makes, with the same controls.
        keep: with a backend, derived fields, by MuJoCo's names, that a call returns.
        nconmax, njmax: with a backend, numbers of contacts and of constraint rows of a world, on average over the
            worlds, for which there is memory at least; None for those of `contact_capacity`.

    Returns:
        The function. `ctrl` has the shape (nu,), or (n, nu) for n worlds. `params` is what `make_params` gives, under
            `vmap` for n worlds, or None for the model's own parameters. On backends "host" and "cuda" the bits are
            those of `Simulation.step`. On "cuda" memory for contacts does not grow inside a program: where it is too
            small, all worlds of the call keep their state, and `stalled` counts the steps that they did not make. A
            step with larger `nconmax` and `njmax` goes on from that state.

    Raises:
        ValueError: an argument is invalid.
        BackendError: the backend cannot run here, or the model is solved by islands on a GPU.
    """
    if backend is not None:
        if derived:
            raise ValueError("derived=True is for steps of one world; name the fields in keep, as backend is given")
        return make_batch_step(model, backend, num_worlds, steps, keep, nconmax, njmax)
    given = {"num_worlds": num_worlds, "steps": None if steps == 1 else steps, "keep": tuple(keep) or None}
    _refuse("make_step", **given, nconmax=nconmax, njmax=njmax)
    return jax_step.make_step(model, True) if derived else jax_step.make_step(model, False)


def make_forward(
    model: Model,
    *,
    backend: str | None = None,
    num_worlds: int | None = None,
    keep: Iterable[str] = ("qacc",),
    nconmax: int | None = None,
    njmax: int | None = None,
) -> Callable[..., Fields]:
    """Make the forward dynamics of a model, which does not integrate; see `make_step`.

    Without a backend the function `forward(state, ctrl, params=None)` returns every derived field of one world. With a
    backend the function `forward(state, ctrl, params=None, worlds=None)` returns the fields of many worlds that `keep`
    names, each (n, ...). `worlds` (n,) bool chooses the worlds to evaluate; the fields of others are zero.
    """
    if backend is not None:
        return make_batch_forward(model, backend, num_worlds, keep, nconmax, njmax)
    _refuse("make_forward", num_worlds=num_worlds, nconmax=nconmax, njmax=njmax)
    return jax_step.make_forward(model)


def _refuse(function: str, **given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{function} takes {name} only for many worlds on a backend; give backend='auto', or leave out {name}"
            )
