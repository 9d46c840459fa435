"""`Simulation`: the public face of the engine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import mujoco
import numpy as np

from simengine.backends.select import make_backend
from simengine.emission.calls import EmittedCall
from simengine.engine import ListEngine
from simengine.errors import BackendError, NonFiniteError
from simengine.group import Group
from simengine.jax_engine import JaxEngine
from simengine.model.model import Model, load_model
from simengine.records import Constraints, Contacts
from simengine.state.fields import FIELD, STATUS
from simengine_scheduler import Executor, Segments, Trace
from simengine_scheduler.core import Emitter

ModelSource: TypeAlias = str | os.PathLike[str] | mujoco.MjModel | Model

_DTYPES = ("float32", "float64")
_EMISSIONS = ("auto", "counted", "ahead", "whole")
_ON_NONFINITE = ("raise", "freeze", "reset")


class Simulation:
    """A batch of worlds stepped together.

    Args:
        model: a model (anything `load_model` takes), or a list of (model, number of worlds).
        num_worlds: number of worlds, where `model` is a single one.
        backend: "cuda", "host", "jax", or "auto" for the first of these that can run here (see `self.backend`).
        executor: name of a scheduler executor, or "auto" for the backend's own choice, measured on the first
            steps where it may be either (see `executor_reason`); "jax" has none.
        dtype: "float32" or "float64".
        seed: seed of the executors that draw an order at random.
        keep: derived fields, by MuJoCo's name, that `step` must leave valid; a plain step stores only what the next one
            needs. They are those of the last evaluation of the step, as after `mj_step`; those of SENSED, such as
            `sensordata`, are of its first. Sensors cost nothing where they are not kept.
        shards: ranges into which each group's worlds are split; None lets the backend choose. No result depends on it.
        on_nonfinite: what happens to a world whose state is no longer a number: "raise" freezes it and raises
            `NonFiniteError` once, "freeze" freezes it silently, "reset" resets it. Others are not touched.
        emission: "counted" emits what the contacts found need, once they are counted; "ahead" emits all that a step may
            need at once, which spares small batches the wait; "whole" makes a step of a shard one call: on the host for
            any model, on the GPU for simple models with few worlds, others being stepped "ahead". "auto" suits the
            executor; no result depends on it.
        executor_options: further options for `simengine_scheduler.make_executor`, such as window or streams.

    Raises:
        ValueError: a bad argument, named in the message.
        UnsupportedModelError: a model needs what the engine lacks.
        BackendError: the backend cannot run here.

    Arrays of the CUDA backend are CuPy views of the engine's memory: valid until the next step, ordered on CuPy's
    current stream. Host arrays are NumPy views with the same rule. JAX arrays are immutable values.
    """

    def __init__(
        self,
        model: ModelSource | Sequence[tuple[ModelSource, int]],
        num_worlds: int | None = None,
        *,
        backend: str = "auto",
        executor: str = "auto",
        dtype: str = "float32",
        seed: int = 0,
        keep: Iterable[str] = (),
        shards: int | None = None,
        on_nonfinite: str = "raise",
        emission: str = "auto",
        executor_options: dict[str, Any] | None = None,
    ):
        pairs = _groups(model, num_worlds)
        if dtype not in _DTYPES:
            raise ValueError(f"unknown dtype {dtype!r}; choose one of {', '.join(_DTYPES)}")
        if on_nonfinite not in _ON_NONFINITE:
            raise ValueError(f"unknown on_nonfinite {on_nonfinite!r}; choose one of {', '.join(_ON_NONFINITE)}")
        if emission not in _EMISSIONS:
            raise ValueError(f"unknown emission {emission!r}; choose one of {', '.join(_EMISSIONS)}")
        if shards is not None and not is_positive(shards):
            raise ValueError(f"shards is {shards!r}; give a positive integer, or None to let the backend choose")
        self.dtype = dtype
        self.keep = _derived(keep)
        self._on_nonfinite = on_nonfinite
        chosen = make_backend(backend)
        self.backend = chosen.name if chosen else "jax"
        self._engine: ListEngine | JaxEngine
        if chosen is None:
            self._engine = JaxEngine(pairs, executor, dtype)
        else:
            self._engine = ListEngine(pairs, chosen, executor, dtype, seed, shards, emission, executor_options or {})
        self.groups: tuple[Group, ...] = tuple(Group(self._engine, i, m, n, dtype) for i, (m, n) in enumerate(pairs))
        self.reset()

    @property
    def executor(self) -> str:
        """Name of the executor; where several are tried on the first steps, of that whose turn it is."""
        return self._engine.executor_name

    @property
    def executor_reason(self) -> str:
        """Why it is this executor, with figures where it was measured."""
        return self._engine.executor_reason

    @property
    def emission(self) -> str:
        """How steps become kernels: "counted", "ahead" or "whole"; "none" on backend "jax", which has no lists."""
        return self._engine.emission

    # ---------------------------------------------------------------------------------------------------- groups

    def add_group(self, model: ModelSource, num_worlds: int) -> Group:
        """Take worlds of another model into the batch, in the model's initial state; the other groups stay as they are.

        Raises:
            ValueError: a bad number of worlds.
            UnsupportedModelError, BackendError: the model cannot be run here; the simulation is as before.
        """
        ((loaded, count),) = _groups([(model, num_worlds)], None)
        group = Group(self._engine, self._engine.add(loaded, count), loaded, count, self.dtype)
        self.groups = (*self.groups, group)
        group.reset()
        return group

    def remove_group(self, group: Group) -> None:
        """Give back a group's worlds and their memory; the other groups stay as they are, and so do their `index`es.

        Raises:
            ValueError: the group is not one of this simulation, or the last one.
        """
        if group not in self.groups:
            raise ValueError(f"{group!r} is not in this simulation; give one of sim.groups")
        if len(self.groups) == 1:
            raise ValueError(f"{group!r} is the last group; close the simulation instead")
        self.groups = tuple(other for other in self.groups if other is not group)
        group.leave()
        self._engine.remove(group.index)

    # ------------------------------------------------------------------------------------------------ stepping

    def step(self, n: int = 1, ctrl: Any = None) -> None:
        """Advance every world by `n` steps with the controls as they are, or as given.

        Args:
            n: number of steps.
            ctrl: controls, (num_worlds, nu), or (n, num_worlds, nu) with those of each step; for a simulation of
                several groups a list of such arrays, or None, for each group.

        Raises:
            ValueError: a bad number of steps, control shape, or a control that is not a number.
            NonFiniteError: worlds were found whose state is not finite (with on_nonfinite="raise").
        """
        self._engine.step(_steps(n), self.keep, {} if ctrl is None else self._controls(int(n), ctrl))
        self._check_worlds()

    def step_through(self, executor: Executor, n: int = 1, ctrl: Any = None, as_issued: bool = False) -> Trace:
        """Advance every world as `step` does, through an executor of the caller's.

        Args:
            executor: one of `simengine_scheduler.make_executor(name, **sim.executor_options)`.
            n, ctrl: as for `step`.
            as_issued: take whole steps as `step` does, where these are whole, and not kernel by kernel.

        Returns:
            The trace of the executor's last run, which is of one step where controls change or steps go ahead of their
            counts, else of all.

        Raises:
            BackendError: backend "jax" has no kernel list.
            ValueError, NonFiniteError: as for `step`.
        """
        engine = self._list_engine("trace")
        controls = {} if ctrl is None else self._controls(int(n), ctrl)
        engine.step(_steps(n), self.keep, controls, executor, as_issued)
        self._check_worlds()
        return engine.trace

    def _controls(self, n: int, ctrl: Any) -> dict[int, Any]:
        """Controls of each of `n` steps, (n, num_worlds, nu), by the group's number; sets those that are the same."""
        groups, several = self.groups, isinstance(ctrl, list | tuple) and len(self.groups) > 1
        if several and len(ctrl) != len(groups):
            raise ValueError(
                f"step(ctrl=...) got controls of {len(ctrl)} groups and there are {len(groups)}; give each"
            )
        found = list(ctrl) if several else [ctrl]
        owners = groups if several else (self._single("step(ctrl=...)"),)
        checked = [None if own is None else group.controls(n, own) for group, own in zip(owners, found, strict=True)]
        sequences = {}
        for group, own in zip(owners, checked, strict=True):
            if own is not None and own.ndim == 3:
                sequences[group.index] = own
            elif own is not None:
                group.set_state(ctrl=own)
        return sequences

    def forward(self) -> None:
        """Fill every derived field (qacc, contacts, ...) from the state without integrating, as `mj_forward` does."""
        self._engine.forward()
        self._check_worlds()

    def reset(self, worlds: Any = None, keyframe: int | str | None = None) -> None:
        """Set worlds (all, a mask or indices) to the model's initial state or a keyframe; see `Group.reset`."""
        groups = self.groups if worlds is None else (self._single("reset(worlds)"),)
        for group in groups:
            group.reset(worlds, keyframe)

    def set_state(self, worlds: Any = None, **fields: Any) -> None:
        """Set state fields of a simulation of one model; see `Group.set_state`."""
        self._single("set_state").set_state(worlds, **fields)

    def set_params(self, worlds: Any = None, **params: Any) -> None:
        """Give worlds of a simulation of one model parameters of their own; see `Group.set_params`."""
        self._single("set_params").set_params(worlds, **params)

    def _check_worlds(self) -> None:
        if self._on_nonfinite == "freeze":
            return
        for group in self.groups:
            bad = self._engine.bad_worlds(group.index)
            if bad and bad > np.count_nonzero(group.reported):
                self._report_bad(group)

    def _report_bad(self, group: Group) -> None:
        status = np.asarray(self._engine_host(group, "world_status"))
        worlds = np.flatnonzero((status != 0) & ~group.reported)
        if self._on_nonfinite == "reset":
            group.reset(worlds)
            return
        group.reported[worlds] = True
        raise NonFiniteError([int(w) for w in worlds], [STATUS[int(status[w])] for w in worlds], group.model.name)

    def _engine_host(self, group: Group, name: str) -> np.ndarray:
        return group.to_host(self._engine.get(group.index, name))

    # -------------------------------------------------------------------------------------------------- arrays

    @property
    def num_worlds(self) -> int:
        """Number of worlds, over all groups."""
        return sum(group.num_worlds for group in self.groups)

    @property
    def model(self) -> Model:
        """The model of a simulation of one model."""
        return self._single("model").model

    @property
    def qpos(self) -> Any:
        """Coordinates, (num_worlds, nq) [m, rad, quaternions]."""
        return self._single("qpos").qpos

    @property
    def qvel(self) -> Any:
        """Velocities, (num_worlds, nv) [m/s, rad/s]."""
        return self._single("qvel").qvel

    @property
    def qacc(self) -> Any:
        """Accelerations of the latest evaluation, (num_worlds, nv) [m/s^2, rad/s^2]."""
        return self.field("qacc")

    @property
    def ctrl(self) -> Any:
        """Controls, (num_worlds, nu)."""
        return self._single("ctrl").ctrl

    @property
    def time(self) -> np.ndarray:
        """Time since each world's reset, (num_worlds,) float64 [s]."""
        return self._single("time").time

    def field(self, name: str) -> Any:
        """Any field of the state table by MuJoCo's name, (num_worlds, ...); see `Group.field`."""
        return self._single("field").field(name)

    def sensor(self, name: str) -> Any:
        """What a sensor reads, (num_worlds, dim); see `Group.sensor`."""
        return self._single("sensor").sensor(name)

    def contacts(self, world: int) -> Contacts:
        """Contacts of a world after `forward()`, exactly as many as there are."""
        return self._single("contacts").contacts(world)

    def constraints(self, world: int) -> Constraints:
        """Constraint rows of a world after `forward()`, exactly as many as there are."""
        return self._single("constraints").constraints(world)

    # ------------------------------------------------------------------------------------------------- insight

    @property
    def last_kernel_list(self) -> list[EmittedCall]:
        """The calls of the latest step (the last one of `step(n)`), shard after shard, with their sizes."""
        return self._engine.last_kernel_list()

    @property
    def segments(self) -> Segments:
        """The table of the kernel list's segments."""
        return self._list_engine("segments").segments

    @property
    def executor_options(self) -> dict[str, Any]:
        """What `make_executor` needs for an executor to `step_through`: segments, device and others."""
        return self._list_engine("executor").needed_options()

    def emitters(self) -> list[Emitter]:
        """Emitters of the kernel list of one step, to look at; `step_through` runs it."""
        return self._list_engine("kernel list").lists()

    def trace(self, as_issued: bool = False) -> Trace:
        """Take one step with recording on and return what ran when (`to_chrome`, `plot`).

        Whole steps are traced kernel by kernel, unless `as_issued` asks for what is issued: a call or two.
        """
        trace = self._list_engine("trace").traced_step(self.keep, as_issued)
        self._check_worlds()
        return trace

    def counts(self, group: int = 0) -> dict[str, int]:
        """Totals of the latest count of a group: contacts, rows, and worlds by pair type and size class.

        Args:
            group: place of the group in `groups`.
        """
        return self._engine.counts(self.groups[group].index)

    def nbytes(self) -> int:
        """Bytes held, of models, parameters, fields and arenas; `Group.footprint` says it beforehand."""
        return self._engine.nbytes()

    def synchronize(self) -> None:
        """Wait until everything issued so far is done."""
        self._engine.synchronize()

    def close(self) -> None:
        """Give back threads and streams; the simulation cannot step afterwards."""
        self._engine.close()

    def _list_engine(self, what: str) -> ListEngine:
        if isinstance(self._engine, JaxEngine):
            raise BackendError(f"backend 'jax' runs no kernel list, so it has no {what}; use backend='host' or 'cuda'")
        return self._engine

    def _single(self, what: str) -> Group:
        if len(self.groups) != 1:
            raise ValueError(f"{what} needs to know the group of a simulation of several models; use sim.groups[i]")
        return self.groups[0]


def is_positive(n: Any) -> bool:
    """Whether something is a whole number of at least one."""
    return isinstance(n, (int, np.integer)) and not isinstance(n, bool) and bool(n >= 1)


def _steps(n: Any) -> int:
    """A number of steps. Raises ValueError for what is none."""
    if not is_positive(n):
        shown = repr(n) if np.isscalar(n) else type(n).__name__
        raise ValueError(f"step(n) takes a positive number of steps, got {shown}; pass controls as step(ctrl=...)")
    return int(n)


def _groups(model: Any, num_worlds: int | None) -> list[tuple[Model, int]]:
    if isinstance(model, (list, tuple)):
        if num_worlds is not None:
            raise ValueError("num_worlds goes with a single model; a list of models carries its own numbers of worlds")
        for index, entry in enumerate(model):
            if not isinstance(entry, (list, tuple)) or len(entry) != 2:
                raise ValueError(f"entry {index} of the list of models is no pair; give (model, number of worlds)")
        pairs = [(load_model(source), count) for source, count in model]
        if not pairs:
            raise ValueError("Simulation got an empty list of models; give at least one (model, number of worlds)")
    else:
        pairs = [(load_model(model), 1 if num_worlds is None else num_worlds)]
    for loaded, count in pairs:
        if not is_positive(count):
            raise ValueError(f"model {loaded.name!r} was given {count!r} worlds; give a positive integer")
    return [(loaded, int(count)) for loaded, count in pairs]


def _derived(keep: Iterable[str]) -> frozenset[str]:
    names = frozenset((keep,) if isinstance(keep, str) else keep)
    for name in sorted(names):
        if name not in FIELD or FIELD[name].space != "world":
            raise ValueError(f"keep names {name!r}, which is no world field; see simengine.state.fields.FIELDS")
    return names
