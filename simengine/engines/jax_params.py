"""Parameters of single worlds in JAX, and the fields of the model table that follow from them.

`make_params` is a pure function for one world. `JaxParameters` holds the parameters of a group's worlds. `WorldModel`
is a model in which such fields replace the model's own.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from simengine.model.model import Model, table_of
from simengine.model.model_table import ModelTable
from simengine.model.params import SavedParams, WorldParameters, together

Params = dict[str, jax.Array]
"""Fields of the model table with a world's own values, by name and in the table's shapes."""

_UNDAMPED = int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP | mujoco.mjtDisableBit.mjDSBL_DAMPER)


def make_params(model: Model | ModelTable, **params: Any) -> Params:
    """Compute the fields of the model table that follow from parameters of one world.

    The result is an argument of the functions that `make_step` and `make_forward` return. Their results are those of a
    model compiled with these values, within rounding. `make_params` can be jitted, vmapped, and differentiated in
    forward and reverse mode. To step worlds that differ, vmap over `make_params` and the step together.

    Args:
        model: the model.
        params: gravity, body_mass, geom_friction and others (`simengine.model.params.PARAMS`), with MuJoCo's names,
            shapes and units. The precision is that of the JAX arrays among them, or else JAX's default.

    Returns:
        The fields of the model table that differ from the model's, by name. Only the names of the parameters decide
        which fields these are.

    Raises:
        ValueError: worlds of this model cannot differ in a parameter, or a value has a wrong shape.
    """
    table = table_of(model).with_candidates()
    meaning = WorldParameters(table)
    given = {name: _checked(name, value, meaning.default(name).shape) for name, value in params.items()}
    if not given:
        return {}
    given = {name: meaning.default(name) for name in together(given)} | given
    dtype = _precision(given.values())
    fields = _derived(meaning, {name: jnp.asarray(value, dtype)[None] for name, value in given.items()})
    return {name: values.reshape(table.arrays[name].shape) for name, values in fields.items()}


def _derived(meaning: WorldParameters, given: Params) -> Params:
    """Return fields (worlds, entries) that follow from parameters of worlds, in full precision on every device."""
    with jax.default_matmul_precision("highest"), jax.numpy_rank_promotion("allow"):
        return meaning.derive(jnp, given)


def _checked(name: str, value: Any, shape: tuple[int, ...]) -> Any:
    """Return the value as an array. Raises ValueError if its shape is not `shape`."""
    array = value if isinstance(value, jax.Array) else np.asarray(value, np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, expected {shape}; vmap make_params over several worlds")
    return array


def _precision(values: Any) -> Any:
    """Return the widest real type of the JAX arrays among values, or JAX's default type if there are none."""
    types = [value.dtype for value in values if isinstance(value, jax.Array)]
    real = [dtype for dtype in types if jnp.issubdtype(dtype, jnp.floating)]
    return max(real, key=lambda dtype: dtype.itemsize) if real else jnp.result_type(float)


class WorldModel:
    """A model in which one world's values replace some fields of the table.

    Args:
        model: the model, which has all other fields.
        params: fields of the table with the world's values, by name.

    Raises:
        ValueError: the table has no such field, or a value has another size.
    """

    def __init__(self, model: ModelTable, params: Params):
        self._model = model
        self._own = {name: _field(model, name, value) for name, value in params.items()}
        if "dof_damping" in params and not model.mj.opt.disableflags & _UNDAMPED:
            self.opt_eulerdamp = 1  # the world may have damping although the model has none

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__["_own"]
        return own[name] if name in own else getattr(self._model, name)


def _field(model: ModelTable, name: str, value: Any) -> jax.Array:
    known = model.arrays.get(name)
    if known is None:
        raise ValueError(f"params holds {name!r}, which is no field of the model table; give what make_params returns")
    array = jnp.asarray(value)
    if array.size != known.size:
        raise ValueError(
            f"params holds {name} of shape {array.shape} for one world of model {model.name!r}, expected "
            f"{known.shape}; vmap the step over several worlds"
        )
    return array.reshape(known.shape)


def of_world(model: ModelTable, params: Params | None) -> Any:
    """Return the model with the fields of one world in place of its own; the model itself if `params` is None."""
    return WorldModel(model, params) if params else model


class JaxParameters:
    """Parameters of the worlds of one group, in float64 if JAX has it, else in float32.

    Attributes:
        fields: table fields that follow from the parameters set so far, (num_worlds, ...), in the group's precision.
    """

    def __init__(self, model: ModelTable, num_worlds: int, dtype: str):
        self._model = model
        self._num_worlds = num_worlds
        self._dtype = dtype
        self._meaning = WorldParameters(model)
        self._given: dict[str, jax.Array] = {}
        self._chosen: set[str] = set()  # names in _given that were set, not only read
        self._jitted = jax.jit(self._updated)
        self.fields: Params = {}

    def values(self, name: str) -> jax.Array:
        """A parameter of every world, (num_worlds, ...). Raises ValueError if it is no parameter of the model."""
        if name not in self._given:
            default = jnp.asarray(self._meaning.default(name), jnp.result_type(float))
            self._given[name] = jnp.broadcast_to(default, (self._num_worlds, *default.shape))
        return self._given[name]

    def given(self, name: str) -> jax.Array | None:
        """A parameter of every world, (num_worlds, ...); None if it was not set."""
        return self._given.get(name) if self.fields else None

    def set(self, worlds: np.ndarray | None, fields: dict[str, Any]) -> None:
        """Set parameters of all worlds, or of those with the given indices, and the fields that follow from them.

        JAX compiles a program for each set of parameters and, if `worlds` is given, each power of two of their number.
        """
        numbers = np.arange(self._num_worlds) if worlds is None else np.asarray(worlds)
        count = len(numbers)
        if not count or not fields:
            return
        names = together(fields)
        given = {name: self.values(name) for name in names}
        # the first world is repeated until their number is a power of two
        row = np.zeros(count if worlds is None else 1 << (count - 1).bit_length(), np.int32)
        row[:count] = np.arange(count)
        new = {}
        for name, value in fields.items():
            array = value if isinstance(value, np.ndarray) else jnp.asarray(value)
            new[name] = (array[row] if array.ndim == given[name].ndim else array).astype(given[name].dtype)
        changed, self.fields = self._jitted(given, self.fields, new, jnp.asarray(numbers[row], jnp.int32))
        self._given |= changed
        self._chosen |= set(changed)

    def _updated(self, given: Params, fields: Params, new: Params, worlds: jax.Array) -> tuple[Params, Params]:
        """Return parameters and fields with new values for worlds (n,). A world may be listed several times."""
        given = given | {name: given[name].at[worlds].set(value) for name, value in new.items()}
        derived = _derived(self._meaning, {name: values[worlds] for name, values in given.items()})
        fields = dict(fields)
        for name, values in derived.items():
            known = jnp.asarray(self._model.arrays[name], self._dtype)
            old = fields.get(name, jnp.broadcast_to(known, (self._num_worlds, *known.shape)))
            entries = values.astype(old.dtype).reshape(len(values), *known.shape)
            fields[name] = old.at[worlds].set(entries)
        return given, fields

    def saved(self) -> SavedParams:
        """The parameters that were set, and the table fields that follow from them, on the host."""
        given = {name: np.array(self._given[name]) for name in sorted(self._chosen)}
        fields = {name: np.array(values).reshape(self._num_worlds, -1) for name, values in self.fields.items()}
        return SavedParams(given, fields)

    def restore(self, saved: SavedParams) -> None:
        """Take parameters and table fields as they were saved. No parameter may have been set before."""
        if not self._meaning.fits(saved):
            self.set(None, saved.given)
            return
        for name, values in saved.given.items():
            self._given[name] = jnp.asarray(values, jnp.result_type(float))
        for name, rows in saved.fields.items():
            shape = self._model.arrays[name].shape
            self.fields[name] = jnp.asarray(rows, self._dtype).reshape(self._num_worlds, *shape)
        self._chosen |= set(saved.given)

    def nbytes(self) -> int:
        """Memory of the parameters and of the fields that follow from them [bytes]."""
        return sum(int(array.nbytes) for array in (*self._given.values(), *self.fields.values()))
