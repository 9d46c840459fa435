"""States of whole simulations: as arrays on the host, and as files.

A state holds everything on which later steps depend, so that a simulation that goes on from it computes the bits of one
that was never interrupted. A file is an `.npz` archive of NumPy. Its entries are those of `_HEADER`, and
`0/fields/qpos` and so on: the index of the group, the part of its state, and the name.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeAlias

import mujoco
import numpy as np

from simengine.arrays import to_host
from simengine.batch import Batch
from simengine.errors import did_you_mean
from simengine.files import UNREADABLE, replaced
from simengine.group import Group
from simengine.model.model_table import ModelTable
from simengine.model.params import SavedParams
from simengine.state.fields import FIELD, INTEGRATION_STATE, WORLD_STATUS, entry_shape

FORMAT = 1
"""Version of the format of the files. It rises when older versions of the engine could not read a file correctly."""

FullState: TypeAlias = list[dict[str, dict[str, np.ndarray]]]
"""For each group its parts "fields", "params", "table" and "flags", which are arrays by name; see
`Simulation.full_state`."""

_PARTS = ("fields", "params", "table", "flags")
_FLAGS = ("reported", "paused")
_OF_GROUPS = ("models", "num_worlds", "fingerprints")
_HEADER = ("simengine_state", "engine_version", "mujoco_version", "dtype", *_OF_GROUPS)


def full_state(batch: Batch) -> FullState:
    """Return copies of everything on which later steps depend, on the host."""
    state = []
    for group in batch.groups:
        saved = batch.engine.saved_params(group.index)
        fields = {name: np.array(to_host(batch.engine.get(group.index, name))) for name in INTEGRATION_STATE}
        flags = {"reported": group.reported.copy(), "paused": np.array(group.paused)}
        state.append({"fields": fields, "params": dict(saved.given), "table": dict(saved.fields), "flags": flags})
    return state


def set_full_state(batch: Batch, dtype: str, state: Sequence[Mapping[str, Mapping[str, Any]]]) -> None:
    """Give a simulation the state that `full_state` returned. Nothing is changed if it does not fit.

    Raises:
        ValueError: the state does not fit the groups, their numbers of worlds or the precision.
    """
    if len(state) != len(batch.groups):
        raise ValueError(
            f"the state has {len(state)} group(s) and the simulation has {len(batch.groups)}; give the state of a "
            "simulation of the same models"
        )
    checked = [_checked(group, dtype, own) for group, own in zip(batch.groups, state, strict=True)]
    for group, own in zip(batch.groups, checked, strict=True):
        batch.engine.restore_params(group.index, SavedParams(own["params"], own["table"]))
        for name, values in own["fields"].items():
            batch.engine.put(group.index, name, None, values)
        batch.engine.valid[group.index] = frozenset()
        group.reported = own["flags"]["reported"].copy()
        group.paused = bool(own["flags"]["paused"])


def save_state(batch: Batch, dtype: str, path: str | os.PathLike[str]) -> None:
    """Write the state of a simulation to a file. If the process ends meanwhile, the previous file remains."""
    tables = [group.model.table for group in batch.groups]
    header: dict[str, Any] = {
        "simengine_state": FORMAT,
        "engine_version": _engine_version(),
        "mujoco_version": mujoco.__version__,
        "dtype": dtype,
        "models": [table.name for table in tables],
        "num_worlds": [group.num_worlds for group in batch.groups],
        "fingerprints": [fingerprint(table) for table in tables],
    }
    entries = {name: np.array(value) for name, value in header.items()}
    for index, own in enumerate(full_state(batch)):
        entries |= {f"{index}/{part}/{name}": array for part in _PARTS for name, array in own[part].items()}
    with replaced(path) as file:
        np.savez(file, **entries)  # type: ignore[arg-type]


def load_state(batch: Batch, dtype: str, path: str | os.PathLike[str]) -> None:
    """Give a simulation the state in a file that `save_state` wrote.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is not a complete saved state, or does not fit the simulation.
    """
    entries = _read(os.fspath(path))
    _check_header(batch, dtype, os.fspath(path), entries)
    state: FullState = [{part: {} for part in _PARTS} for _ in batch.groups]
    for key, array in entries.items():
        index, _, rest = key.partition("/")
        part, _, name = rest.partition("/")
        if key in _HEADER:
            continue
        if not index.isdecimal() or int(index) >= len(state) or part not in _PARTS:
            raise ValueError(f"{os.fspath(path)!r} has the unknown entry {key!r}; give a file that save_state wrote")
        state[int(index)][part][name] = array
    set_full_state(batch, dtype, state)


def fingerprint(table: ModelTable) -> str:
    """Return a hash of everything that the engine knows of a model."""
    digest = hashlib.sha256(repr(sorted((table.sizes | table.options).items())).encode())
    for name, array in sorted(table.arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:32]


def _read(path: str) -> dict[str, np.ndarray]:
    if not os.path.exists(path):
        raise FileNotFoundError(f"no saved state at {path!r}; give a file that save_state wrote")
    foreign = f"{path!r} is not a complete saved state"
    try:
        # a file that NumPy opens by itself stays open if it is no archive
        with open(path, "rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("it holds a single array")
            entries = dict(archive)
    except UNREADABLE as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{foreign} ({reason}); give a file that save_state wrote") from error
    form = entries.get("simengine_state", np.array(0))
    if form.ndim or form.dtype.kind not in "iu":
        raise ValueError(f"{foreign}, because its format is no number; give a file that save_state wrote")
    if (found := int(form)) > FORMAT:
        raise ValueError(
            f"{path!r} was saved by simengine {entries.get('engine_version')} in format {found}, and this version "
            f"reads formats up to {FORMAT}; install that version or a later one"
        )
    missing = [name for name in _HEADER if name not in entries]
    if missing:
        raise ValueError(f"{foreign}, because it lacks {missing[0]!r}; give a file that save_state wrote")
    shapes = {entries[name].shape for name in _OF_GROUPS}
    if len(shapes) != 1 or len(shapes.pop()) != 1:
        raise ValueError(f"{foreign}, because it tells no model of each group; give a file that save_state wrote")
    return entries


def _check_header(batch: Batch, dtype: str, path: str, entries: Mapping[str, np.ndarray]) -> None:
    """Raise ValueError if a file is of other models, numbers of worlds or another precision than a simulation."""
    saved = list(zip(*(entries[name].tolist() for name in _OF_GROUPS), strict=True))
    tables = [(group.model.table, group.num_worlds) for group in batch.groups]
    theirs, ours = (
        " + ".join(f"{worlds} x {name!r}" for name, worlds in pairs)
        for pairs in ([entry[:2] for entry in saved], [(table.name, worlds) for table, worlds in tables])
    )
    if theirs != ours:
        raise ValueError(
            f"{path!r} holds the state of {theirs} and this simulation is {ours}; load it into a simulation of the "
            "same models and numbers of worlds"
        )
    for (name, _, mark), (table, _) in zip(saved, tables, strict=True):
        if mark != fingerprint(table):
            raise ValueError(
                f"{path!r} was saved with another model {name!r} than this simulation has (by MuJoCo "
                f"{entries['mujoco_version']}, here is {mujoco.__version__}); load it with the model that was saved"
            )
    if str(entries["dtype"]) != dtype:
        raise ValueError(
            f"{path!r} holds numbers of type {entries['dtype']} and this simulation computes in {dtype}; load it into "
            f"Simulation(..., dtype='{entries['dtype']}')"
        )


def _checked(group: Group, dtype: str, own: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, np.ndarray]]:
    """Return the parts of a group's state as arrays. Raises ValueError if they do not fit the group."""
    _check_names(f"the state of {group!r}", own, _PARTS)
    arrays = {part: {name: to_host(value) for name, value in own[part].items()} for part in _PARTS}
    _check_names(f"'fields' of {group!r}", arrays["fields"], INTEGRATION_STATE)
    _check_names(f"'flags' of {group!r}", arrays["flags"], _FLAGS)
    shapes: dict[str, tuple[int, ...]] = {"reported": (group.num_worlds,), "paused": ()}
    for name in INTEGRATION_STATE:
        shapes[name] = (group.num_worlds, *entry_shape(FIELD[name], group.model.table.sizes))
        wanted = "int32" if FIELD[name].kind == "int" else dtype
        if arrays["fields"][name].dtype != wanted:
            raise ValueError(
                f"the state of {group!r} has {name} of type {arrays['fields'][name].dtype}, expected {wanted}; give "
                "the state of a simulation with the same dtype"
            )
    for name in arrays["params"]:
        shapes[name] = (group.num_worlds, *group.params(name).shape[1:])
    for name, array in (*arrays["fields"].items(), *arrays["params"].items(), *arrays["flags"].items()):
        if array.shape != shapes[name]:
            raise ValueError(
                f"the state of {group!r} has {name} of shape {array.shape}, expected {shapes[name]}; give the state "
                "of a simulation of the same models and numbers of worlds"
            )
    _check_values(group, arrays)
    for name, array in arrays["table"].items():
        if array.ndim != 2 or len(array) != group.num_worlds:
            raise ValueError(
                f"the state of {group!r} has the table field {name} of shape {array.shape}, expected "
                f"({group.num_worlds}, entries); give what full_state() returned"
            )
    return arrays


def _check_values(group: Group, arrays: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    """Raise ValueError if flags, parameters or statuses are of a kind that no state has."""
    kinds = {"flags": ("b", "truth values"), "params": ("f", "real numbers"), "table": ("f", "real numbers")}
    for part, (kind, words) in kinds.items():
        for name, array in arrays[part].items():
            if array.dtype.kind != kind:
                raise ValueError(
                    f"the state of {group!r} has {name} of type {array.dtype}, expected {words}; give what "
                    "full_state() returned"
                )
    status = arrays["fields"]["world_status"]
    if ((status < 0) | (status >= len(WORLD_STATUS))).any():
        raise ValueError(
            f"the state of {group!r} has a world_status of {status[(status < 0) | (status >= len(WORLD_STATUS))][0]}, "
            f"expected 0 to {len(WORLD_STATUS) - 1}; give what full_state() returned"
        )


def _check_names(what: str, given: Mapping[str, Any], expected: Sequence[str]) -> None:
    for name in expected:
        if name not in given:
            raise ValueError(f"{what} lacks {name!r}; give what full_state() returned")
    for name in given:
        if name not in expected:
            raise ValueError(f"{what} has the unknown entry {name!r}{did_you_mean(name, expected)}; leave it out")


@cache
def _engine_version() -> str:
    # asked once: Python keeps a table of each folder that it searches, and another one whenever the folder has changed
    try:
        return version("simengine")
    except PackageNotFoundError:
        return "unknown"
