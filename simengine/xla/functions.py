"""`make_batch_step` and `make_batch_forward`: steps of many worlds as pure functions of JAX."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

import jax
import jax.numpy as jnp

from simengine.arguments import kept_fields
from simengine.backends.select import make_backend
from simengine.emission.dense import STORED_BY_BLOCKS
from simengine.model.model import Model, table_of
from simengine.model.model_table import ModelTable
from simengine.plan.capacity import first_entries
from simengine.state.fields import INTEGRATION_STATE
from simengine.xla.calls import Call, register
from simengine.xla.checks import check_arguments
from simengine.xla.folding import folded
from simengine.xla.jax_form import run_in_jax
from simengine.xla.memories import memory_of
from simengine.xla.state import BatchState

Fields = dict[str, jax.Array]
Params = Mapping[str, jax.Array]


def make_batch_step(
    model: Model | ModelTable,
    backend: str = "auto",
    num_worlds: int | None = None,
    steps: int = 1,
    keep: Iterable[str] = (),
    nconmax: int | None = None,
    njmax: int | None = None,
) -> Callable[..., Any]:
    """Make a step of many worlds that works under `jit`, `lax.scan`, `vmap` and `shard_map`.

    Args:
        model: the model.
        backend: "cuda", "host", "jax", or "auto" for the first of these that can run here.
        num_worlds: number of worlds for which memory is made at once; None makes it when the step is traced. The step
            works for any number of worlds: each number has memory of its own.
        steps: number of steps of the model that one call makes, with the same controls.
        keep: derived fields, by MuJoCo's names, that a call returns, as `Simulation` does with `keep`.
        nconmax, njmax: numbers of contacts and of constraint rows of a world, on average over the worlds, for which
            there is memory at least; None for those of `contact_capacity`.

    Returns:
        A function `step(state, ctrl, params=None)` that returns the next `BatchState`, or with `keep` the next state
            and a dictionary of the fields, each (n, ...). `ctrl` has the shape (n, nu). `params` has the fields that
            `simengine.make_params` gives under `vmap`, each (n, ...), or is None for the model's own parameters. The
            bits are those of `Simulation.step` on the same backend. On backend "cuda" memory for contacts does not grow
            inside a program: where it is too small, the worlds keep their state, and `stalled` counts the steps that
            they did not make. Make a step with larger `nconmax` and `njmax` then, which goes on from that state.

    Raises:
        ValueError: an argument is invalid.
        BackendError: the backend cannot run here, or the model's steps wait for counts on a GPU.
    """
    if steps < 1:
        raise ValueError(f"steps is {steps}; give the number of steps that one call makes, at least 1")
    engine = _Engine(table_of(model), backend, steps, keep, _room(nconmax, njmax))
    if num_worlds is not None:
        engine.prepare(num_worlds)

    def step(state: BatchState, ctrl: jax.Array, params: Params | None = None) -> Any:
        new, fields = engine(state, ctrl, params)
        return (new, fields) if engine.keep else new

    return step


def make_batch_forward(
    model: Model | ModelTable,
    backend: str = "auto",
    num_worlds: int | None = None,
    keep: Iterable[str] = ("qacc",),
    nconmax: int | None = None,
    njmax: int | None = None,
) -> Callable[..., Fields]:
    """Make the forward dynamics of many worlds, which does not integrate; see `make_batch_step`.

    Returns:
        A function `forward(state, ctrl, params=None, worlds=None)` that returns the fields named by `keep`, each
            (n, ...). `worlds` (n,) bool chooses the worlds to evaluate. The fields of others are zero, and take no
            time on backends "host" and "cuda".
    """
    engine = _Engine(table_of(model), backend, 0, keep, _room(nconmax, njmax))
    if num_worlds is not None:
        engine.prepare(num_worlds)

    def forward(
        state: BatchState, ctrl: jax.Array, params: Params | None = None, worlds: jax.Array | None = None
    ) -> Fields:
        fields: Fields = engine(state, ctrl, params, worlds)[1]
        return fields

    return forward


def contact_capacity(model: Model | ModelTable, num_worlds: int) -> tuple[int, int]:
    """Numbers of contacts and of constraint rows of a world, on average over the worlds, that a step holds on a GPU.

    These are the defaults of `nconmax` and `njmax` of `make_step`.
    """
    table = table_of(model)
    contacts, rows = (first_entries(table, space, num_worlds, True) // num_worlds for space in ("contact", "row"))
    return contacts, rows


def _room(nconmax: int | None, njmax: int | None) -> tuple[int, int]:
    for name, value in (("nconmax", nconmax), ("njmax", njmax)):
        if value is not None and value < 1:
            raise ValueError(f"{name} is {value}; give the number of entries of a world, at least 1, or None")
    return nconmax or 0, njmax or 0


class _Engine:
    """The custom calls of one function, by number of worlds, type and parameters."""

    def __init__(self, table: ModelTable, backend: str, steps: int, keep: Iterable[str], room: tuple[int, int]):
        self.keep = tuple(sorted(_world_fields(keep)))
        made = make_backend(backend)
        self.backend = "jax" if made is None else made.name
        self._table = table
        self._steps = steps
        self._room = room
        self._calls: dict[tuple[int, str, tuple[str, ...]], Call] = {}
        if self.backend != "jax":
            memory_of(self.backend).load(table)

    def prepare(self, num_worlds: int) -> None:
        """Make memory for a number of worlds in float32."""
        if self.backend != "jax":
            memory_of(self.backend).prepare(self.call(num_worlds, "float32", ()))

    def call(self, num_worlds: int, dtype: str, params: tuple[str, ...]) -> Call:
        """The custom call of a number of worlds, which lives as long as this object."""
        key = num_worlds, dtype, params
        if key not in self._calls:
            call = register(Call(self._table, dtype, num_worlds, self._steps, self.keep, params, self._room))
            if self.backend == "cuda":  # while nothing runs; XLA's own threads would wait for it otherwise
                memory_of(self.backend).prepare(call)
            self._calls[key] = call
        return self._calls[key]

    def __call__(
        self, state: BatchState, ctrl: jax.Array, params: Params | None, worlds: jax.Array | None = None
    ) -> tuple[BatchState, Fields]:
        own = dict(params or {})
        count, dtype = check_arguments(self._table, state, ctrl, own)
        if worlds is not None and (jnp.shape(worlds) != (count,) or jnp.result_type(worlds) != jnp.bool_):
            raise ValueError(f"worlds has shape {jnp.shape(worlds)}; give a mask of bool, ({count},)")
        if self.backend == "jax":
            state, fields = run_in_jax(self._table, self._steps, self.keep, state, ctrl, own)
            return state, fields if worlds is None else _of_chosen(fields, worlds)
        call = self.call(count, dtype, tuple(sorted(own)))
        values = {**state._asdict(), "ctrl": ctrl}
        arrays = [jnp.asarray(values[name]) for name in call.inputs]
        arrays += [jnp.asarray(own[name], dtype).reshape(count, -1) for name in call.params]
        if call.chooses:
            arrays.append(jnp.ones(count, jnp.int32) if worlds is None else worlds.astype(jnp.int32))
        run = folded(call, lambda count: self.call(count, call.dtype, call.params))
        results = undifferentiable(self.backend, run)(*arrays)
        new = dict(zip(call.outputs, results, strict=False))
        fields = dict(zip(call.keep, results[len(call.outputs) :], strict=True))
        if not self._steps:
            return state, fields if worlds is None else _of_chosen(fields, worlds)
        if self.backend == "host":  # whose memory for contacts grows
            return state._replace(**new), fields
        missing = jnp.where(new["world_status"] == 0, self._steps - (new["nstep"] - state.nstep), 0)
        return state._replace(**new, stalled=state.stalled + missing.astype(jnp.int32)), fields


def _of_chosen(fields: Fields, worlds: jax.Array) -> Fields:
    """Fields with zeros in worlds that a mask leaves out."""
    return {k: jnp.where(worlds.reshape(-1, *(1,) * (v.ndim - 1)), v, 0) for k, v in fields.items()}


def _world_fields(keep: Iterable[str]) -> frozenset[str]:
    names = kept_fields(keep)
    for name in names:
        if name in STORED_BY_BLOCKS or name in INTEGRATION_STATE:
            raise ValueError(f"keep names {name!r}, which a step inside JAX does not return; leave it out")
    return names


def undifferentiable(backend: str, run: Callable[..., list[jax.Array]]) -> Callable[..., list[jax.Array]]:
    """A function that calls the engine's steps on a backend, with an error as its derivative."""

    @jax.custom_jvp
    def undifferentiable(*arrays: jax.Array) -> list[jax.Array]:
        return run(*arrays)

    @undifferentiable.defjvp
    def _(primals: Any, tangents: Any) -> NoReturn:
        raise TypeError(
            f"a step of backend {backend!r} has no derivative; use simengine.make_step(model), which is written in JAX"
        )

    return undifferentiable
