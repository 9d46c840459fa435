"""`Group`: the worlds of one model within a simulation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mujoco
import numpy as np

from simengine.arguments import check_world, checked_controls, checked_values, chosen_worlds
from simengine.arrays import Array, ArrayLike, to_host
from simengine.engines.engine import Engine
from simengine.errors import did_you_mean
from simengine.model.keyframe import keyframe_state
from simengine.model.model import Model
from simengine.plan.memory import Footprint
from simengine.records import Constraints, Contacts
from simengine.state.fields import FIELD, INTEGRATION_STATE, ROW_SPACES, WORLD_STATUS, entry_shape

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
        index: number of the group in its simulation. It stays the same when other groups are added or removed.
        model: the model.
        num_worlds: number of worlds.
        reported: worlds that were flagged and named since their reset, (num_worlds,) bool.
    """

    def __init__(self, engine: Engine, index: int, model: Model, num_worlds: int, dtype: str):
        self._member_of: Engine | None = engine
        self._gone = ""  # why the group can no longer be used
        self.index = index
        self.model = model
        self.num_worlds = num_worlds
        self._dtype = dtype
        self.reported = np.zeros(num_worlds, dtype=bool)
        self._counted = np.zeros(num_worlds, dtype=bool)
        self._warnings = dict.fromkeys(WORLD_STATUS[1:], 0)

    def __repr__(self) -> str:
        return f"Group({self.index}, {self.model.name!r}, {self.num_worlds} worlds)"

    @property
    def _engine(self) -> Engine:
        if self._member_of is None:
            raise RuntimeError(f"{self!r} {self._gone}")
        return self._member_of

    def leave(self, why: str) -> None:
        """Make every later use raise an error that says why. `Simulation.remove_group` and `close` call this."""
        self._member_of, self._gone = None, why

    @property
    def paused(self) -> bool:
        """Whether `Simulation.step` leaves out the group. Assign True or False to change it."""
        return self.index in self._engine.paused

    @paused.setter
    def paused(self, wanted: bool) -> None:
        (self._engine.paused.add if wanted else self._engine.paused.discard)(self.index)

    @property
    def qpos(self) -> Array:
        """Coordinates, (num_worlds, nq) [m, rad, quaternions]."""
        return self._engine.get(self.index, "qpos")

    @property
    def qvel(self) -> Array:
        """Velocities, (num_worlds, nv) [m/s, rad/s]."""
        return self._engine.get(self.index, "qvel")

    @property
    def ctrl(self) -> Array:
        """Controls, (num_worlds, nu)."""
        return self._engine.get(self.index, "ctrl")

    @property
    def time(self) -> np.ndarray:
        """Time since each world's reset, (num_worlds,) float64 [s]."""
        return self.to_host(self._engine.get(self.index, "nstep")) * float(self.model.table.opt_timestep)

    @property
    def num_shards(self) -> int:
        """Number of shards into which the group's worlds are split."""
        return self._engine.num_shards(self.index)

    def footprint(self, num_worlds: int | None = None, keep: Iterable[str] = ()) -> Footprint:
        """Predict the memory of a number of worlds of this model on this backend. Nothing is allocated.

        Args:
            num_worlds: how many worlds; None stands for the number of worlds of the group.
            keep: derived fields that are valid after `step`.

        Raises:
            BackendError: on backend "jax", where JAX manages the memory.
        """
        return self._engine.footprint(self.index, num_worlds or self.num_worlds, frozenset(keep))

    def to_host(self, array: Array) -> np.ndarray:
        """Return one of the simulation's arrays as a NumPy array."""
        return to_host(array)

    def field(self, name: str) -> Array:
        """Return a field of the state table by MuJoCo's name, (num_worlds, ...).

        State fields are always valid. Derived fields are valid after `forward()`, and after `step()` if they are in
        the simulation's `keep`.

        Raises:
            ValueError: there is no such field, or its values are not those of the latest step.
        """
        field = FIELD.get(name)
        if field is None or field.space not in ("world", "contact", *ROW_SPACES):
            hint = did_you_mean(name, (other for other, known in FIELD.items() if known.space == "world"))
            raise ValueError(f"the state table has no field {name!r}{hint}; see simengine.state.fields.FIELDS")
        if field.space != "world":
            where = "contacts" if field.space == "contact" else "constraints"
            raise ValueError(f"field {name!r} has no fixed number of entries a world; use {where}(world)")
        if name not in INTEGRATION_STATE and name not in self._engine.valid[self.index]:
            raise ValueError(
                f"field {name!r} does not hold the latest step; call forward(), or pass keep=({name!r},) to Simulation"
            )
        return self._engine.get(self.index, name)

    def sensor(self, name: str) -> Array:
        """Return the readings of a sensor, (num_worlds, dim): its part of the field `sensordata`.

        Raises:
            ValueError: the model has no sensor of this name, or `sensordata` does not hold the latest step.
        """
        mj = self.model.mj
        index = mujoco.mj_name2id(mj, mujoco.mjtObj.mjOBJ_SENSOR, name)
        if index < 0:
            hint = did_you_mean(name, (mj.sensor(i).name for i in range(mj.nsensor)))
            raise ValueError(f"model {self.model.name!r} has no sensor {name!r}{hint}; it has {mj.nsensor} sensors")
        return self.field("sensordata")[:, mj.sensor_adr[index] : mj.sensor_adr[index] + mj.sensor_dim[index]]

    def set_state(self, worlds: ArrayLike | None = None, **fields: ArrayLike) -> None:
        """Set state fields of all worlds, or of some.

        Setting qpos, qvel or forces clears the solver's warm start unless qacc_warmstart is given too.

        Args:
            worlds: None for all, a boolean mask of shape (num_worlds,), or indices.
            fields: qpos, qvel, act, ctrl, qfrc_applied, xfrc_applied, mocap_pos, mocap_quat, eq_active or
                qacc_warmstart. A value has the shape (worlds, ...), or that of one world, which all worlds then share.

        Raises:
            ValueError: a field is unknown, or a value has the wrong shape, is on another device, or is on the host and
                not finite. Nothing is changed then.
        """
        chosen = self._worlds(worlds)
        values: dict[str, Array | float] = {name: self._values(name, v, chosen) for name, v in fields.items()}
        if set(values) - _INPUTS and "qacc_warmstart" not in values:
            values["qacc_warmstart"] = 0.0
        for name, value in values.items():
            self._engine.put(self.index, name, chosen, value)

    def params(self, name: str) -> Array:
        """Return a parameter of every world, (num_worlds, ...), in MuJoCo's shape.

        The values are those that `set_params` set, or else the model's. The array is a copy in float64. On backend
        "jax" it is in float32 unless JAX has 64-bit numbers.

        Raises:
            ValueError: worlds of this model cannot differ in a parameter of this name.
        """
        return self._engine.params(self.index, name)

    def set_params(self, worlds: ArrayLike | None = None, **params: ArrayLike) -> None:
        """Give worlds parameters of their own. Quantities that follow from them are computed on the backend's device.

        Results are those of a model compiled with these values, within rounding. Backends "host" and "cuda" compile no
        kernel, and a parameter's buffers stay where they are after its first use. Backend "jax" compiles the step once
        more when a parameter is first set. It also compiles the update of dependent quantities for each set of
        parameters that are set together and, if `worlds` is given, for each power of two of their number.

        Args:
            worlds: None for all, a boolean mask of shape (num_worlds,), or indices.
            params: gravity, body_mass, geom_friction and others (`simengine.model.params.PARAMS`), with MuJoCo's names
                and shapes. A value has the shape (worlds, ...), or that of one world, which all worlds then share.
                qpos0 is the reference position of hinges and slides, and the position to which `reset` sets a world.
                body_ipos is the centre of mass in the body's frame.

        Raises:
            ValueError: worlds of this model cannot differ in a parameter, or a value has the wrong shape, is on another
                device, or is on the host and not finite. Nothing is changed then.
        """
        chosen = self._worlds(worlds)
        count = self.num_worlds if chosen is None else len(chosen)
        values = {}
        for name, value in params.items():
            shape = self._engine.param_shape(self.index, name)
            # a range beyond float32 is none there
            within = "float64" if name.endswith("range") else self._dtype
            values[name] = checked_values(name, value, shape, count, "float64", self._beside(), within)
        with np.errstate(over="ignore"):
            self._engine.set_params(self.index, chosen, values)

    def reset(self, worlds: ArrayLike | None = None, keyframe: int | str | None = None) -> None:
        """Set worlds to the model's initial state, without applied forces, and unfreeze them.

        The initial state is qpos0 at rest, with zero controls, at time zero. A world with a qpos0 of its own takes that
        one. A keyframe replaces the initial state with its own.

        Args:
            worlds: None for all, a boolean mask of shape (num_worlds,), or indices.
            keyframe: name or number of a keyframe of the model.

        Raises:
            ValueError: there is no such world or keyframe.
        """
        chosen = self._worlds(worlds)
        self._count_flagged()
        state: dict[str, Any] = dict(self.model.table.initial)
        if keyframe is not None:
            state |= keyframe_state(self.model.table, keyframe)
        own = None if keyframe is not None else self._engine.given(self.index, "qpos0")
        if own is not None:
            state["qpos"] = own if chosen is None else own[chosen]
        for name in INTEGRATION_STATE:
            self._engine.put(self.index, name, chosen, state.get(name, 0))
        self.reported[... if chosen is None else chosen] = False
        self._counted[... if chosen is None else chosen] = False

    def warnings(self) -> dict[str, int]:
        """How often worlds were flagged since the group was made, by the stage that found the number.

        A flagged world has a number that is not finite or beyond 1e10, where MuJoCo warns and resets. The stages are
        "input" (the state or an input, before a step), "acceleration" (without constraints), "solve" (with them) and
        "integrate" (the new state).
        """
        self._count_flagged()
        return dict(self._warnings)

    def newly_flagged(self) -> tuple[list[int], list[str]]:
        """Worlds that the latest count found flagged, and the stage that flagged each. Each is given once.

        A world that is flagged at the end of a step is counted in the next one.
        """
        bad = self._engine.bad_worlds(self.index)
        if not bad or bad <= np.count_nonzero(self.reported):
            return [], []
        status = self._count_flagged()
        worlds = np.flatnonzero((status != 0) & ~self.reported)
        self.reported[worlds] = True
        return worlds.tolist(), [WORLD_STATUS[code] for code in status[worlds]]

    def _count_flagged(self) -> np.ndarray:
        """Count worlds that were flagged since they were last counted or reset; return the status of all worlds."""
        status = self.to_host(self._engine.get(self.index, "world_status"))
        new = (status != 0) & ~self._counted
        self._counted |= new
        for code in status[new]:
            self._warnings[WORLD_STATUS[code]] += 1
        return status

    def _worlds(self, worlds: ArrayLike | None) -> np.ndarray | None:
        return chosen_worlds(worlds, self.num_worlds)

    def _values(self, name: str, value: ArrayLike, worlds: np.ndarray | None) -> Array:
        if name not in _SETTABLE:
            hint = did_you_mean(name, _SETTABLE)
            raise ValueError(f"{name!r} is not a state field that can be set{hint}; choose from {', '.join(_SETTABLE)}")
        entry = entry_shape(FIELD[name], self.model.table.sizes)
        count = self.num_worlds if worlds is None else len(worlds)
        return checked_values(name, value, entry, count, self._dtype, self._beside())

    def _beside(self) -> Array | None:
        """An array on the device where arrays that are given must lie; None for JAX, which moves them itself."""
        array = self._engine.get(self.index, "qpos")
        return None if type(array).__module__.startswith("jax") else array

    def controls(self, n: int, value: ArrayLike) -> Array:
        """Return checked controls for `n` steps.

        The shape is (num_worlds, nu) or (nu,) for controls that all steps share, and (n, num_worlds, nu) for controls
        of each step.

        Raises:
            ValueError: the controls have another shape, are on another device, or are on the host and not finite.
        """
        return checked_controls(n, value, self.num_worlds, self.model.table.nu, self._dtype, self._beside())

    def contacts(self, world: int) -> Contacts:
        """Return the contacts of a world after `forward()`.

        Raises:
            ValueError: there is no such world, or the latest call was not `forward()`.
        """
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
        """Return the constraint rows of a world after `forward()`.

        Raises:
            ValueError: there is no such world, or the latest call was not `forward()`.
        """
        self._check_arena("constraints", world)
        found = self._engine.arena(self.index, world, _ROW_FIELDS, "nefc", "efc_adr")
        values = [found[name] for name in _ROW_FIELDS]
        return Constraints(values[0][:, : self.model.nv], *values[1:])

    def _check_arena(self, what: str, world: int) -> None:
        check_world(world, self.num_worlds)
        if "efc_J" not in self._engine.valid[self.index]:
            raise ValueError(f"{what}(world) shows the latest forward(); call forward() first")
