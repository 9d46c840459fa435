"""`Simulation`: the public face of the engine."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from simengine.arguments import (
    ModelSource,
    checked_options,
    choice,
    dtype_name,
    is_positive,
    kept_fields,
    models_and_worlds,
)
from simengine.arrays import Array, ArrayLike
from simengine.backends.select import make_backend
from simengine.batch import Batch, Controls
from simengine.engines.engine import Engine
from simengine.engines.jax_engine import JaxEngine
from simengine.engines.list_engine import ListEngine
from simengine.group import Group
from simengine.model.model import Model
from simengine.plan.issue import EMISSIONS
from simengine.records import Constraints, Contacts
from simengine.saved_state import FullState, full_state, load_state, save_state, set_full_state
from simengine.schedule import Schedule
from simengine_scheduler.registry import EXECUTORS

_ON_NONFINITE = ("raise", "freeze", "reset")


class Simulation:
    """A batch of worlds that are stepped together.

    A `with` statement closes it at its end.

    Args:
        model: a model (anything `load_model` takes, such as "ant"), or a list of (model, number of worlds).
        num_worlds: number of worlds, if `model` is a single model.
        backend: "cuda", "host", "jax", or "auto" for the first of these that can run here (see `backend`).
        executor: name of a scheduler executor, or "auto" for the backend's choice. If several executors come into
            question, "auto" measures them on the first steps (see `schedule.reason`). Backend "jax" has no executors.
        dtype: float32 or float64, by name or as a type of NumPy or JAX.
        keep: derived fields, by MuJoCo's names, that are valid after `step`. Without it a step stores only what the
            next one needs. The values are those of the last evaluation of the step, as after `mj_step`. The fields in
            `simengine.state.fields.SENSED`, such as `sensordata`, are those of the first evaluation. Sensors are
            computed only if a field of theirs is in `keep`.
        shards: number of shards into which each group's worlds are split; None lets the backend choose. No result
            depends on it.
        on_nonfinite: what happens to a world whose state is not finite. "raise" freezes it and raises `NonFiniteError`
            once, "freeze" freezes it silently, "reset" resets it. Other worlds are not affected.
        emission: how steps become kernel calls. "counted" waits for the counts of contacts and emits only the calls
            that have work. "ahead" emits at once all calls that a step may need, so that small batches need not wait.
            "whole" makes a step of a shard one call. On the host this works for any model. On the GPU it works for
            simple models with few worlds, and other models are stepped "ahead". "stages" is as "counted", and
            "stages-ahead" as "ahead", with a kernel for each stage, as an engine has that does not fuse them; they are
            slow, and lists to schedule. "auto" chooses what suits the executor. No result depends on it.
        executor_options: further options of `simengine_scheduler.make_executor`, such as window, streams, or the seed
            of executor "shuffled".

    Attributes:
        backend: name of the backend that runs.
        dtype: "float32" or "float64".

    Raises:
        ValueError: an argument is invalid. The message names it.
        ModelError: a model could not be found or compiled, or has numbers that `dtype` cannot hold.
        UnsupportedModelError: a model needs features that the engine lacks.
        BackendError: the backend cannot run here.

    Arrays of backend "cuda" are CuPy views of the engine's memory. They are valid until the next step, and are ordered
    on CuPy's current stream. Arrays of backend "host" are NumPy views, which are valid until the next step too. JAX
    arrays are immutable values.
    """

    def __init__(
        self,
        model: ModelSource | Sequence[tuple[ModelSource, int]],
        num_worlds: int | None = None,
        *,
        backend: str = "auto",
        executor: str = "auto",
        dtype: npt.DTypeLike = "float32",
        keep: Iterable[str] = (),
        shards: int | None = None,
        on_nonfinite: str = "raise",
        emission: str = "auto",
        executor_options: Mapping[str, Any] | None = None,
    ):
        pairs = models_and_worlds(model, num_worlds)
        self.dtype = dtype_name(dtype)
        choice("on_nonfinite", on_nonfinite, _ON_NONFINITE)
        choice("emission", emission, EMISSIONS)
        choice("executor", executor, sorted(EXECUTORS))
        options = checked_options(executor_options)
        if shards is not None and not is_positive(shards):
            raise ValueError(f"shards is {shards!r}; give a positive integer, or None to let the backend choose")
        kept = kept_fields(keep)
        self._made_with: dict[str, Any] = {
            **{"executor": executor, "dtype": self.dtype, "keep": kept, "shards": shards},
            **{"on_nonfinite": on_nonfinite, "emission": emission, "executor_options": options},
        }
        chosen = make_backend(backend)
        self.backend = chosen.name if chosen else "jax"
        tables = [(m.table, n) for m, n in pairs]
        for table, _ in tables:
            table.check_precision(self.dtype)
        engine: Engine
        if chosen is None:
            engine = JaxEngine(tables, executor, self.dtype, options)
        else:
            engine = ListEngine(tables, chosen, executor, self.dtype, shards, emission, options)
        groups = tuple(Group(engine, i, m, n, self.dtype) for i, (m, n) in enumerate(pairs))
        self._batch = Batch(engine, groups, kept, on_nonfinite)
        self.reset()

    def __repr__(self) -> str:
        worlds = " + ".join(f"{group.num_worlds} x {group.model.name!r}" for group in self.groups)
        if self._batch.is_closed:
            return f"Simulation({worlds}, closed)"
        executor = self._batch.engine.executor_name
        return f"Simulation({worlds}, backend={self.backend!r}, executor={executor!r}, dtype={self.dtype!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def schedule(self) -> Schedule:
        """How steps become kernel calls, what runs them, and why. It also gives traces and runs other executors."""
        return Schedule(self._batch)

    @property
    def keep(self) -> frozenset[str]:
        """Derived fields that are valid after `step`."""
        return self._batch.keep

    @property
    def _engine(self) -> Engine:
        return self._batch.engine

    # ---------------------------------------------------------------------------------------------------- groups

    @property
    def groups(self) -> tuple[Group, ...]:
        """The worlds of each model."""
        return self._batch.groups

    def add_group(self, model: ModelSource, num_worlds: int) -> Group:
        """Add worlds of another model to the batch, in the model's initial state. Other groups are not affected.

        Args:
            model: anything `load_model` takes.
            num_worlds: how many worlds.

        Returns:
            The new group.

        Raises:
            ValueError: `num_worlds` is not a positive integer.
            ModelError, BackendError: the model cannot be run here. The simulation is unchanged then.
        """
        ((loaded, count),) = models_and_worlds([(model, num_worlds)], None)
        loaded.table.check_precision(self.dtype)
        group = Group(self._engine, self._engine.add(loaded.table, count), loaded, count, self.dtype)
        self._batch.groups = (*self.groups, group)
        group.reset()
        return group

    def remove_group(self, group: Group) -> None:
        """Remove a group and release its memory. Other groups are not affected and have the same `index` as before.

        Raises:
            ValueError: the group is not in this simulation, or is its last one.
        """
        if group not in self.groups:
            raise ValueError(f"{group!r} is not in this simulation; give one of sim.groups")
        if len(self.groups) == 1:
            raise ValueError(f"{group!r} is the last group; close the simulation instead")
        engine = self._engine
        self._batch.groups = tuple(other for other in self.groups if other is not group)
        group.leave("was removed from its simulation; take one of sim.groups")
        engine.remove(group.index)

    def pause(self, paused: Sequence[bool] | np.ndarray) -> None:
        """Say of every group whether `step` leaves it out. It takes less time than `Group.paused` of each group.

        Args:
            paused: one value for each of `groups`, in their order.

        Raises:
            ValueError: there are more or fewer values than groups.
        """
        values = paused.tolist() if isinstance(paused, np.ndarray) else paused
        if len(values) != len(self.groups):
            raise ValueError(
                f"pause(...) got {len(values)} values and there are {len(self.groups)} groups; give one per group"
            )
        self._engine.paused = {group.index for group, own in zip(self.groups, values, strict=True) if own}

    # ------------------------------------------------------------------------------------------------ stepping

    def step(self, n: int = 1, ctrl: Controls | None = None) -> None:
        """Advance every world by `n` steps.

        Args:
            n: number of steps.
            ctrl: controls, (num_worlds, nu), or (n, num_worlds, nu) for controls of each step. With several groups it
                is a list with one such array, or None, for each group. None leaves the controls unchanged.

        Raises:
            ValueError: the number of steps is not positive, or the controls have another shape or are not finite.
            NonFiniteError: the state of some worlds is not finite (with on_nonfinite="raise").
            RuntimeError: the simulation is closed.
        """
        self._batch.step(n, ctrl)

    def forward(self) -> None:
        """Fill every derived field (qacc, contacts, ...) from the state without integrating, as `mj_forward` does.

        Raises:
            NonFiniteError: as for `step`.
        """
        self._batch.forward()

    def reset(self, worlds: ArrayLike | None = None, keyframe: int | str | None = None) -> None:
        """Set worlds (all, a mask or indices) to the model's initial state or a keyframe; see `Group.reset`."""
        for group in self.groups if worlds is None else (self._batch.single("reset(worlds)"),):
            group.reset(worlds, keyframe)

    def warnings(self) -> dict[str, int]:
        """How often worlds of all groups were flagged, by the stage that found the number; see `Group.warnings`."""
        counts: Counter[str] = Counter()
        for group in self.groups:
            counts.update(group.warnings())
        return dict(counts)

    def set_state(self, worlds: ArrayLike | None = None, **fields: ArrayLike) -> None:
        """Set state fields of a simulation of one model; see `Group.set_state`."""
        self._batch.single("set_state").set_state(worlds, **fields)

    def params(self, name: str) -> Array:
        """A parameter of every world of a simulation of one model, (num_worlds, ...); see `Group.params`."""
        return self._batch.single("params").params(name)

    def set_params(self, worlds: ArrayLike | None = None, **params: ArrayLike) -> None:
        """Set parameters of worlds of a simulation of one model; see `Group.set_params`."""
        self._batch.single("set_params").set_params(worlds, **params)

    # ------------------------------------------------------------------------------------------- whole states

    def full_state(self) -> FullState:
        """Return copies of everything on which later steps depend, as NumPy arrays.

        Returns:
            For each group, a dictionary of four parts, which are arrays by name. "fields" are the state fields, such as
            qpos, nstep and world_status, (num_worlds, ...). "params" are the parameters that were set, (num_worlds,
            ...), and "table" the fields of the model table that follow from them, (num_worlds, entries). "flags" are
            `Group.reported`, (num_worlds,), and `Group.paused`, (). For JAX the list is a pytree.
        """
        return full_state(self._batch)

    def set_full_state(self, state: Sequence[Mapping[str, Mapping[str, ArrayLike]]]) -> None:
        """Set everything on which later steps depend. Later steps then have the bits of those after `full_state`.

        Derived fields are not valid afterwards. A state of another backend may be set too; later steps then agree
        within rounding.

        Args:
            state: what `full_state` of a simulation of the same models and numbers of worlds returned.

        Raises:
            ValueError: the state does not fit this simulation. Nothing is changed then.
        """
        set_full_state(self._batch, self.dtype, state)

    def save_state(self, path: str | os.PathLike[str]) -> None:
        """Write `full_state` to a file, an archive of NumPy arrays (`.npz`).

        If the process ends before the file is complete, the previous file remains.

        Args:
            path: the file. Nothing is appended to its name.

        Raises:
            FileNotFoundError: the file's folder does not exist.
        """
        save_state(self._batch, self.dtype, path)

    def load_state(self, path: str | os.PathLike[str]) -> None:
        """Set the state in a file of `save_state`; see `set_full_state`.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is not a complete saved state, or is of other models, another number of worlds, another
                dtype or a newer format. Nothing is changed then.
        """
        load_state(self._batch, self.dtype, path)

    def copy(self) -> Simulation:
        """Return an independent simulation with the same groups, backend, options and state. Derived fields are not
        valid in it.
        """
        pairs = [(group.model, group.num_worlds) for group in self.groups]
        other = Simulation(pairs, backend=self.backend, **self._made_with)
        other.set_full_state(self.full_state())
        return other

    # -------------------------------------------------------------------------------------------------- arrays

    @property
    def num_worlds(self) -> int:
        """Number of worlds of all groups together."""
        return sum(group.num_worlds for group in self.groups)

    @property
    def model(self) -> Model:
        """The model of a simulation of one model."""
        return self._batch.single("model").model

    @property
    def qpos(self) -> Array:
        """Coordinates, (num_worlds, nq) [m, rad, quaternions]."""
        return self._batch.single("qpos").qpos

    @property
    def qvel(self) -> Array:
        """Velocities, (num_worlds, nv) [m/s, rad/s]."""
        return self._batch.single("qvel").qvel

    @property
    def qacc(self) -> Array:
        """Accelerations of the latest evaluation, (num_worlds, nv) [m/s^2, rad/s^2]."""
        return self.field("qacc")

    @property
    def ctrl(self) -> Array:
        """Controls, (num_worlds, nu)."""
        return self._batch.single("ctrl").ctrl

    @property
    def time(self) -> np.ndarray:
        """Time since each world's reset, (num_worlds,) float64 [s]."""
        return self._batch.single("time").time

    def field(self, name: str) -> Array:
        """Any field of the state table by MuJoCo's name, (num_worlds, ...); see `Group.field`."""
        return self._batch.single("field").field(name)

    def sensor(self, name: str) -> Array:
        """Readings of a sensor, (num_worlds, dim); see `Group.sensor`."""
        return self._batch.single("sensor").sensor(name)

    def contacts(self, world: int) -> Contacts:
        """Contacts of a world after `forward()`; see `Group.contacts`."""
        return self._batch.single("contacts").contacts(world)

    def constraints(self, world: int) -> Constraints:
        """Constraint rows of a world after `forward()`; see `Group.constraints`."""
        return self._batch.single("constraints").constraints(world)

    # --------------------------------------------------------------------------------------------- memory, end

    def nbytes(self) -> int:
        """Memory of models, parameters, fields and arenas [bytes]. `Group.footprint` predicts it."""
        return self._engine.nbytes()

    def synchronize(self) -> None:
        """Wait until all work issued so far has completed."""
        self._engine.synchronize()

    def close(self) -> None:
        """Release threads and streams. Later uses raise RuntimeError. A second call does nothing."""
        self._batch.close()
