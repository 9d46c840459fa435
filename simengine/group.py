"""`Group`: the worlds of one model within a simulation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from simengine.model.keyframe import keyframe_state
from simengine.model.model import Model
from simengine.records import Constraints, Contacts
from simengine.state.fields import FIELD, INTEGRATION_STATE, entry_shape

if TYPE_CHECKING:
    from simengine.emission.memory import Footprint
    from simengine.engines.jax_engine import JaxEngine
    from simengine.engines.list_engine import ListEngine

_SETTABLE = (
    *("qpos", "qvel", "act", "ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat"),
    *("eq_active", "qacc_warmstart"),
)
_INPUTS = frozenset({"ctrl", "mocap_pos", "mocap_quat"})  # what a controller sets from step to step
_CONTACT_FIELDS = ("contact_dist", "contact_pos", "contact_frame", "contact_cand", "contact_efc_address")
_OF_PAIRS = ("geom1", "geom2", "condim")
_ROW_FIELDS = tuple(f"efc_{name}" for name in Constraints._fields)


class Group:
    """The worlds of one model.

    Attributes:
        index: number of the group in its simulation, which it keeps when other groups come and go.
        model: the model.
        num_worlds: number of worlds.
        reported: worlds that went non-finite and were named in an error since their reset, (num_worlds,).
    """

    def __init__(self, engine: ListEngine | JaxEngine, index: int, model: Model, num_worlds: int, dtype: str):
        self._member_of: ListEngine | JaxEngine | None = engine
        self.index = index
        self.model = model
        self.num_worlds = num_worlds
        self._dtype = dtype
        self.reported = np.zeros(num_worlds, dtype=bool)

    def __repr__(self) -> str:
        return f"Group({self.index}, {self.model.name!r}, {self.num_worlds} worlds)"

    @property
    def _engine(self) -> ListEngine | JaxEngine:
        if self._member_of is None:
            raise ValueError(f"{self!r} was removed from its simulation; take one of sim.groups")
        return self._member_of

    def leave(self) -> None:
        """Know no simulation any more; `Simulation.remove_group` calls this."""
        self._member_of = None

    @property
    def paused(self) -> bool:
        """Whether `Simulation.step` leaves the group's worlds as they are; it may be set."""
        return self.index in self._engine.paused

    @paused.setter
    def paused(self, wanted: bool) -> None:
        (self._engine.paused.add if wanted else self._engine.paused.discard)(self.index)

    @property
    def qpos(self) -> Any:
        """Coordinates, (num_worlds, nq) [m, rad, quaternions]."""
        return self._engine.get(self.index, "qpos")

    @property
    def qvel(self) -> Any:
        """Velocities, (num_worlds, nv) [m/s, rad/s]."""
        return self._engine.get(self.index, "qvel")

    @property
    def ctrl(self) -> Any:
        """Controls, (num_worlds, nu)."""
        return self._engine.get(self.index, "ctrl")

    @property
    def time(self) -> np.ndarray:
        """Time since each world's reset, (num_worlds,) float64 [s]."""
        return self.to_host(self._engine.get(self.index, "nstep")) * float(self.model.table.opt_timestep)

    @property
    def num_shards(self) -> int:
        """Ranges into which the group's worlds are split."""
        return self._engine.num_shards(self.index)

    def footprint(self, num_worlds: int | None = None, keep: Iterable[str] = ()) -> Footprint:
        """Bytes that so many worlds of this model take here (all of the group's if None), before any is asked for.

        Args:
            num_worlds: how many worlds.
            keep: derived fields that `step` leaves valid.

        Raises:
            BackendError: the backend leaves its memory to JAX.
        """
        return self._engine.footprint(self.index, num_worlds or self.num_worlds, frozenset(keep))

    def to_host(self, array: Any) -> np.ndarray:
        """A NumPy array of a backend array."""
        return array.get() if hasattr(array, "get") else np.asarray(array)

    def field(self, name: str) -> Any:
        """A field of the state table, (num_worlds, ...).

        State fields are always there; derived ones after `forward()`, or after `step()` if the simulation keeps them.

        Raises:
            ValueError: no such field, or its values are not those of the latest step.
        """
        field = FIELD.get(name)
        if field is None or field.space not in ("world", "contact", "row"):
            raise ValueError(f"the state table has no field {name!r}; see simengine.state.fields.FIELDS")
        if field.space != "world":
            where = "contacts" if field.space == "contact" else "constraints"
            raise ValueError(f"field {name!r} has no fixed number of entries a world; use {where}(world)")
        if name not in INTEGRATION_STATE and name not in self._engine.valid[self.index]:
            raise ValueError(
                f"field {name!r} does not hold the latest step; call forward(), or pass keep=({name!r},) to Simulation"
            )
        return self._engine.get(self.index, name)

    def sensor(self, name: str) -> Any:
        """What a sensor reads, (num_worlds, dim), of the field `sensordata`.

        Raises:
            ValueError: the model has no sensor of this name, or `sensordata` does not hold the latest step.
        """
        mj = self.model.mj
        index = mujoco.mj_name2id(mj, mujoco.mjtObj.mjOBJ_SENSOR, name)
        if index < 0:
            raise ValueError(f"model {self.model.name!r} has no sensor {name!r}; it has {mj.nsensor} sensors")
        return self.field("sensordata")[:, mj.sensor_adr[index] : mj.sensor_adr[index] + mj.sensor_dim[index]]

    def set_state(self, worlds: Any = None, **fields: Any) -> None:
        """Set state fields of all worlds, or of those of a mask or index array.

        Setting qpos, qvel or forces clears the solver's warm start unless qacc_warmstart is given too.

        Args:
            worlds: None, a boolean mask of (num_worlds,), or indices.
            fields: qpos, qvel, act, ctrl, qfrc_applied, xfrc_applied, mocap_pos, mocap_quat, eq_active,
                qacc_warmstart; each of (worlds, ...) or one world's shape, which is then used for all.

        Raises:
            ValueError: unknown field, wrong shape, or a host value that is not finite; nothing is changed then.
        """
        chosen = self._worlds(worlds)
        values = {name: self._values(name, value, chosen) for name, value in fields.items()}
        if set(values) - _INPUTS and "qacc_warmstart" not in values:
            values["qacc_warmstart"] = 0.0
        for name, value in values.items():
            self._engine.put(self.index, name, chosen, value)

    def params(self, name: str) -> Any:
        """A parameter of every world, (num_worlds, ...), as MuJoCo shapes it; see `set_params`.

        It is in float64, but on backend "jax" in float32 unless JAX has 64-bit numbers.

        Raises:
            ValueError: not a parameter that worlds of this model may differ in.
        """
        return self._engine.params(self.index, name)

    def set_params(self, worlds: Any = None, **params: Any) -> None:
        """Give worlds parameters of their own; what follows from them is worked out where the worlds are.

        Results are those of a model compiled with these values, within rounding. No kernel of the engine is
        compiled, and after a parameter's first use none of its buffers moves. Backend "jax" compiles the step once more
        when a parameter is first set, and what works out the rest for every choice of parameters that are set together
        and, where worlds are chosen, every power of two of their number.

        Args:
            worlds: None, a boolean mask of (num_worlds,), or indices.
            params: gravity, body_mass, geom_friction and others (`simengine.model.params.PARAMS`), by MuJoCo's names
                and shapes; each of (worlds, ...) or one world's shape, which is then used for all. qpos0 is the
                reference of hinges and slides, and where `reset` puts a world; body_ipos are centres of mass.

        Raises:
            ValueError: a parameter that worlds of this model cannot differ in, a wrong shape, or a host value that is
                not finite; nothing is changed then.
        """
        chosen = self._worlds(worlds)
        count = self.num_worlds if chosen is None else len(chosen)
        values = {}
        for name, value in params.items():
            shape = self._engine.params(self.index, name).shape[1:]
            values[name] = self._checked(name, value, tuple(shape), count, "float64")
        self._engine.set_params(self.index, chosen, values)

    def reset(self, worlds: Any = None, keyframe: int | str | None = None) -> None:
        """Set worlds to the model's initial state, healthy and without applied forces.

        That is qpos0, a world's own where it was set, at rest without controls at time zero, or what a keyframe says.

        Args:
            worlds: None, a boolean mask of (num_worlds,), or indices.
            keyframe: name or number of a keyframe of the model.

        Raises:
            ValueError: no such world or keyframe.
        """
        chosen = self._worlds(worlds)
        state = self.model.table.initial | (keyframe_state(self.model.table, keyframe) if keyframe is not None else {})
        own = None if keyframe is not None else self._engine.given(self.index, "qpos0")
        if own is not None:
            state = state | {"qpos": own if chosen is None else own[chosen]}
        for name in INTEGRATION_STATE:
            self._engine.put(self.index, name, chosen, state.get(name, 0))
        self.reported[... if chosen is None else chosen] = False

    def _worlds(self, worlds: Any) -> np.ndarray | None:
        if worlds is None:
            return None
        chosen = self.to_host(worlds)
        if chosen.dtype == bool:
            if chosen.shape != (self.num_worlds,):
                raise ValueError(f"the mask of worlds has shape {chosen.shape}, expected ({self.num_worlds},)")
            return np.flatnonzero(chosen)
        chosen = np.atleast_1d(chosen)
        if chosen.size == 0:
            return chosen.astype(np.int64)
        if chosen.dtype.kind not in "iu" or chosen.ndim != 1:
            raise ValueError(f"worlds must be None, a mask or a list of indices, got {worlds!r}")
        for world in (chosen.min(), chosen.max()):
            self._check_world(int(world))
        unique, times = np.unique(chosen, return_counts=True)
        if len(unique) != len(chosen):
            raise ValueError(f"world {int(unique[times > 1][0])} is listed twice; list every world once")
        return chosen

    def _check_world(self, world: Any) -> None:
        if not isinstance(world, (int, np.integer)) or not 0 <= world < self.num_worlds:
            raise ValueError(f"world {world!r} does not exist; there are {self.num_worlds}, numbered from 0")

    def _values(self, name: str, value: Any, worlds: np.ndarray | None) -> Any:
        if name not in _SETTABLE:
            raise ValueError(f"{name!r} is not a state field that can be set; choose from {', '.join(_SETTABLE)}")
        entry = entry_shape(FIELD[name], self.model.table.sizes)
        return self._checked(name, value, entry, self.num_worlds if worlds is None else len(worlds), self._dtype)

    def _checked(self, name: str, value: Any, entry: tuple[int, ...], count: int, dtype: str) -> Any:
        """The value as an array of (count, *entry) or entry; what is on the host is finite in its precision."""
        on_device = hasattr(value, "__cuda_array_interface__")
        array = value if on_device or type(value).__module__.startswith("jax") else _numbers(name, value)
        if tuple(array.shape) not in (entry, (count, *entry)):
            raise ValueError(f"{name} has shape {tuple(array.shape)}, expected {(count, *entry)} or {entry}")
        if not isinstance(array, np.ndarray):
            return array
        with np.errstate(over="ignore"):
            values = array.astype(dtype)
        if not np.isfinite(values).all():
            where = np.argwhere(~np.isfinite(values))[0].tolist()
            raise ValueError(f"{name} holds {array[tuple(where)]} at {where}; give numbers that are finite in {dtype}")
        return values

    def controls(self, n: int, value: Any) -> Any:
        """Checked controls for `n` steps: those of all, (num_worlds, nu) or (nu,), or of each, (n, num_worlds, nu).

        Raises:
            ValueError: another shape, or a host value that is not finite.
        """
        nu = self.model.nu
        values = value if hasattr(value, "shape") else _numbers("ctrl", value)
        if len(values.shape) < 3:
            return self._checked("ctrl", values, (nu,), self.num_worlds, self._dtype)
        if tuple(values.shape) != (n, self.num_worlds, nu):
            shapes = f"{tuple(values.shape)}, expected {(n, self.num_worlds, nu)}"
            raise ValueError(f"ctrl has shape {shapes} for {n} steps")
        return self._checked("ctrl", values, (self.num_worlds, nu), n, self._dtype)

    def contacts(self, world: int) -> Contacts:
        """Contacts of a world after `forward()`, exactly as many as there are."""
        self._check_arena("contacts", world)
        model = self.model.table
        own = tuple(f"contact_{name}" for name in _OF_PAIRS) if model.finds_pairs else ()
        found = self._engine.arena(self.index, world, (*_CONTACT_FIELDS, *own), "ncon", "con_adr")
        pair = found["contact_cand"]
        geom1, geom2, dim = (found[n] for n in own) if own else (getattr(model, f"cand_{n}")[pair] for n in _OF_PAIRS)
        return Contacts(
            found["contact_dist"],
            found["contact_pos"],
            found["contact_frame"].reshape(-1, 3, 3),
            geom1,
            geom2,
            dim,
            found["contact_efc_address"],
        )

    def constraints(self, world: int) -> Constraints:
        """Constraint rows of a world after `forward()`, exactly as many as there are."""
        self._check_arena("constraints", world)
        found = self._engine.arena(self.index, world, _ROW_FIELDS, "nefc", "efc_adr")
        values = [found[name] for name in _ROW_FIELDS]
        return Constraints(values[0][:, : self.model.nv], *values[1:])

    def _check_arena(self, what: str, world: int) -> None:
        self._check_world(world)
        if "efc_J" not in self._engine.valid[self.index]:
            raise ValueError(f"{what}(world) shows the latest forward(); call forward() first")


def _numbers(name: str, value: Any) -> np.ndarray:
    """A host value as a float64 array."""
    try:
        array = np.asarray(value)
        if array.dtype.kind in "biuf":
            return array.astype(np.float64)
    except ValueError:  # rows of different lengths
        pass
    raise ValueError(f"{name} is no rectangular array of real numbers; give one, as a NumPy array or nested lists")
