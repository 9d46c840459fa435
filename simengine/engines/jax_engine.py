"""`JaxEngine`: steps groups of worlds with the JAX forms of the stages, on any device of JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simengine.arrays import Array
from simengine.backends.host import available_memory
from simengine.emission.calls import EmittedCall
from simengine.engines.jax_batch import (
    compiled,
    count_of,
    dense,
    guarded_status,
    held_arrays,
    initial_fields,
    row_addresses,
    row_ids,
)
from simengine.errors import BackendError
from simengine.model.model_table import ModelTable
from simengine.model.params import SavedParams
from simengine.plan.memory import require_state
from simengine.state.fields import FIELD, FIELDS, INTEGRATION_STATE, entry_shape
from simengine_scheduler import Executor, Segments, Trace
from simengine_scheduler.core import Emitter

if TYPE_CHECKING:
    from simengine.engines.jax_params import JaxParameters
    from simengine.plan.memory import Footprint
    from simengine.plan.step_plan import StepPlan

_ALL_FIELDS = frozenset(f.name for f in FIELDS)


class JaxEngine:
    """Steps groups of worlds with JAX.

    The number of a group stays the same when other groups are added or removed. The step of a model is compiled once
    for a number of worlds, and once more when table fields first differ between them. These fields are then arguments
    of the step.

    Attributes:
        valid: for each group, the derived fields whose values are those of the latest evaluation.
        paused: groups that `step` leaves out.
    """

    executor_name = "none"
    emission = "none"
    executor_reason = "JAX has no kernel lists"

    def __init__(
        self,
        groups: Sequence[tuple[ModelTable, int]],
        executor: str,
        dtype: str,
        executor_options: Mapping[str, Any],
    ):
        import jax

        if executor_options:
            raise ValueError(
                f"backend 'jax' has no executors, so executor_options={executor_options!r} mean nothing; leave them out"
            )
        if executor != "auto":
            raise ValueError(
                f"backend 'jax' has no executors, so executor={executor!r} means nothing; leave it at 'auto'"
            )
        if dtype == "float64" and not jax.config.read("jax_enable_x64"):
            raise ValueError(
                "backend 'jax' needs 64-bit JAX for dtype='float64'; call jax.config.update('jax_enable_x64', True)"
            )
        self._dtype = dtype
        self._models: dict[int, ModelTable] = {}
        self._counts: dict[int, dict[str, int]] = {}
        self._bad: dict[int, int] = {}
        self._state: dict[int, dict[str, Any]] = {}
        self._derived: dict[int, dict[str, Any]] = {}
        self._jitted: dict[int, Any] = {}
        self._forwards: dict[int, Any] = {}
        self._parameters: dict[int, JaxParameters] = {}
        self.valid: dict[int, frozenset[str]] = {}
        self.paused: set[int] = set()
        self._following_group = 0
        for model, count in groups:
            self.add(model, count)

    def add(self, model: ModelTable, num_worlds: int) -> int:
        """Add a group and return its number. Raises BackendError, and changes nothing, if memory does not suffice."""
        require_state([(model, num_worlds)], "jax", _free_memory(), self._dtype)
        model = model.with_candidates()
        (stepped, forward), state = compiled(model), initial_fields(model, num_worlds, self._dtype)
        group, self._following_group = self._following_group, self._following_group + 1
        self._models[group] = model
        self._counts[group], self._bad[group] = {"ncon": 0, "nefc": 0}, 0
        self._state[group], self._derived[group] = state, {}
        self._jitted[group], self._forwards[group] = stepped, forward
        self.valid[group] = frozenset()
        return group

    def remove(self, group: int) -> None:
        """Remove a group."""
        tables = (self._models, self._counts, self._bad, self._state, self._derived, self._jitted, self._forwards)
        for table in (*tables, self.valid):
            del table[group]  # type: ignore[attr-defined]
        self.paused.discard(group)
        self._parameters.pop(group, None)

    def step(
        self,
        n: int,
        keep: frozenset[str],
        controls: Mapping[int, Array],
        executor: Executor | None = None,
        whole_steps: bool = True,
    ) -> None:
        """Advance the worlds of all groups that are not paused by `n` steps; see `Engine.step`."""
        if executor is not None:
            raise _no_kernel_list("executor")
        for g in (group for group in self._models if group not in self.paused):
            for i in range(n):
                if g in controls:
                    self.put(g, "ctrl", None, controls[g][i])
                wanted = tuple(sorted(keep)) if i == n - 1 else ()
                self._state[g], fields, counts = self._jitted[g](self._state[g], self._own(g), keep=wanted)
            self._derived[g] = fields
            self._note(g, counts)
            self.valid[g] = keep

    def forward(self) -> None:
        """Fill every derived field from the state."""
        for g in self._models:
            fields = self._forwards[g](self._state[g], self._own(g))
            self._state[g]["world_status"] = guarded_status(self._state[g])
            self._derived[g] = fields
            self._note(g, count_of(fields, self._state[g]["world_status"]))
            self.valid[g] = _ALL_FIELDS

    def _note(self, group: int, counts: dict[str, Any]) -> None:
        self._counts[group] = {name: int(value) for name, value in counts.items() if name != "bad"}
        self._bad[group] = int(counts["bad"])

    def get(self, group: int, name: str) -> Array:
        """The array of a world field."""
        if name in INTEGRATION_STATE:
            return self._state[group][name]
        if name not in self._derived[group]:
            raise ValueError(f"backend 'jax' does not compute field {name!r}; use backend='host' or 'cuda' for it")
        value = dense(self._derived[group][name])
        return value.reshape(value.shape[0], *entry_shape(FIELD[name], self._models[group].sizes))

    def put(self, group: int, name: str, worlds: np.ndarray | None, values: Array | np.ndarray | float) -> None:
        """Write a world field of all worlds, or of those with the given indices."""
        import jax.numpy as jnp

        old = self._state[group][name]
        self._state[group][name] = old.at[... if worlds is None else worlds].set(jnp.asarray(values, old.dtype))

    def params(self, group: int, name: str) -> Array:
        """A parameter of every world of a group, (num_worlds, ...), in float64 if JAX has it, else in float32."""
        return self._parameters_of(group).values(name).copy()

    def param_shape(self, group: int, name: str) -> tuple[int, ...]:
        """The shape of a parameter in one world."""
        return tuple(self._parameters_of(group).values(name).shape[1:])

    def given(self, group: int, name: str) -> Array | None:
        """A parameter of every world of a group, (num_worlds, ...); None if it was not set."""
        return self._parameters[group].given(name) if group in self._parameters else None

    def set_params(self, group: int, worlds: np.ndarray | None, fields: dict[str, Array]) -> None:
        """Set parameters of all worlds of a group, or of some, and compute the table fields that follow from them."""
        self._parameters_of(group).set(worlds, fields)

    def saved_params(self, group: int) -> SavedParams:
        """The parameters that were set for worlds of a group, and what follows from them, on the host."""
        return self._parameters[group].saved() if group in self._parameters else SavedParams({}, {})

    def restore_params(self, group: int, saved: SavedParams) -> None:
        """Give all worlds of a group the parameters that were saved, and the model's values of all others."""
        self._parameters.pop(group, None)
        if saved.given:
            self._parameters_of(group).restore(saved)

    def _parameters_of(self, group: int) -> JaxParameters:
        from simengine.engines.jax_params import JaxParameters

        if group not in self._parameters:
            num_worlds = len(self._state[group]["qpos"])
            self._parameters[group] = JaxParameters(self._models[group], num_worlds, self._dtype)
        return self._parameters[group]

    def _own(self, group: int) -> dict[str, Any]:
        """Table fields in which the worlds of a group differ, (num_worlds, ...) by name."""
        return self._parameters[group].fields if group in self._parameters else {}

    def arena(self, group: int, world: int, names: Sequence[str], counter: str, address: str) -> dict[str, np.ndarray]:
        """The active contacts or rows of one world, gathered from the fixed slots that JAX computes."""
        from simengine.engines.jax_params import of_world
        from simengine.physics.constraints.row_layout_jax import row_layout

        fields, model = self._derived[group], self._models[group]
        active = np.asarray(fields["contact_active" if counter == "ncon" else "efc_active"][world])
        found: dict[str, np.ndarray] = {}
        own = {name: values[world] for name, values in self._own(group).items() if name.endswith("_frictionloss")}
        layout = row_layout(of_world(model, own))
        for name in names:
            if name == "contact_cand":
                found[name] = model.slot_cand[active]
            elif name in ("contact_geom1", "contact_geom2", "contact_condim"):
                found[name] = getattr(model, name.replace("contact_", "cand_"))[model.slot_cand[active]]
            elif name == "contact_efc_address":
                found[name] = row_addresses(model, fields, world)[active]
            elif name in ("efc_type", "efc_frictionloss"):
                found[name] = np.asarray(layout.type if name == "efc_type" else layout.frictionloss)[active]
            elif name == "efc_id":
                listed = np.asarray(fields["contact_active"][world])
                found[name] = row_ids(layout, listed)[active]
            else:
                found[name] = np.asarray(dense(fields[name])[world])[active]
        return found

    def num_shards(self, group: int) -> int:
        """One, because JAX steps all worlds of a group together."""
        return 1

    def bad_worlds(self, group: int) -> int:
        """Number of frozen worlds in the latest evaluation."""
        return self._bad[group]

    def has_bad_worlds(self) -> bool:
        """Whether a group has frozen worlds in its latest evaluation."""
        return any(self._bad.values())

    def counts(self, group: int) -> dict[str, int]:
        """Contacts and rows of the latest evaluation."""
        return dict(self._counts[group])

    def last_kernel_list(self) -> list[EmittedCall]:
        """An empty list, because JAX has no kernel calls."""
        return []

    def plan(self, group: int) -> StepPlan:
        """Raise BackendError: JAX compiles a step as a whole."""
        raise _no_kernel_list("plan of kernels")

    @property
    def segments(self) -> Segments:
        """Raise BackendError: JAX has no kernel lists."""
        raise _no_kernel_list("segments")

    @property
    def trace(self) -> Trace:
        """Raise BackendError: JAX has no kernel lists."""
        raise _no_kernel_list("trace")

    def needed_options(self) -> dict[str, Any]:
        """Raise BackendError: JAX has no executors."""
        raise _no_kernel_list("executors")

    def lists(self) -> list[Emitter]:
        """Raise BackendError: JAX has no kernel lists."""
        raise _no_kernel_list("emitters")

    def traced_step(self, keep: frozenset[str], whole_steps: bool) -> Trace:
        """Raise BackendError: JAX has no kernel lists."""
        raise _no_kernel_list("trace")

    def nbytes(self) -> int:
        """Memory of state, derived fields and parameters [bytes]."""
        held = held_arrays([(self._state[g], self._derived[g]) for g in self._models])
        own = sum(parameters.nbytes() for parameters in self._parameters.values())
        return own + sum(int(a.nbytes) for a in held)

    def footprint(self, group: int, num_worlds: int, keep: frozenset[str]) -> Footprint:
        """Raise BackendError: JAX manages its memory itself."""
        raise BackendError("backend 'jax' cannot tell what worlds will take; use backend='host' or 'cuda'")

    def synchronize(self) -> None:
        """Wait until all work issued so far has completed."""
        for state in self._state.values():
            state["qpos"].block_until_ready()

    def close(self) -> None:
        """Do nothing: there are no threads or streams to release."""


def _free_memory() -> int | None:
    """Free bytes of JAX's device, or None if they are not known."""
    import jax

    device = jax.devices()[0]
    if device.platform == "cpu":
        return available_memory()
    stats = device.memory_stats() or {}
    return stats["bytes_limit"] - stats["bytes_in_use"] if "bytes_limit" in stats else None


def _no_kernel_list(what: str) -> BackendError:
    return BackendError(f"backend 'jax' runs no kernel list, so it has no {what}; use backend='host' or 'cuda'")
