"""Checkpoints: files that hold a whole `TrainState`, each with a checksum.

`checkpoints/00000100.npz` is the state after 100 updates. It appears under its name only when it is complete. The
newest ones are kept, so that a damaged one leaves another.
"""

from __future__ import annotations

import hashlib
import warnings
import zipfile
from pathlib import Path
from typing import Any

import jax
import numpy as np

from simengine_training.errors import TrainingError

_KEPT = 3  # checkpoints in a folder; older ones are deleted
_FORMAT = "simengine training 1"
# What reading an archive may raise. A single bit may make an entry large, encrypted or unknown.
_UNREADABLE = (OSError, ValueError, KeyError, EOFError, MemoryError, RuntimeError, zipfile.BadZipFile)


class DamagedCheckpointWarning(UserWarning):
    """A checkpoint cannot be read, and an older one is taken."""


def save(folder: Path, state: Any, updates: int) -> Path:
    """Write the checkpoint of a number of updates, delete old ones, and return its path.

    Args:
        folder: folder of the training.
        state: a tree of arrays.
        updates: number of updates done.
    """
    leaves = [_host(leaf) for leaf in jax.tree.leaves(state)]
    path = _folder(folder) / f"{updates:08d}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    try:
        with part.open("wb") as file:
            np.savez(file, *leaves, about=np.array([_FORMAT, _structure(state), _digest(leaves)]))
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)  # a full disk keeps the space that it has
        raise
    for old in _all(folder)[:-_KEPT]:
        old.unlink()
    return path


def exists(folder: Path) -> bool:
    """Whether a training has written a checkpoint, damaged or not."""
    return bool(_all(folder))


def restore(folder: Path, template: Any) -> tuple[Any, int]:
    """Read the newest checkpoint that is whole.

    Args:
        folder: folder of the training.
        template: a tree of arrays, or of their shapes and types, like the saved one.

    Returns:
        The state, as arrays of NumPy and keys of JAX, and the number of updates.

    Raises:
        TrainingError: there is no checkpoint that can be read, or it is of another training.
    """
    found = _all(folder)
    for path in reversed(found):
        try:
            about, leaves = _read(path)
        except _UNREADABLE as error:
            warnings.warn(
                f"checkpoint {path} is damaged ({error}); the one before it is taken", DamagedCheckpointWarning, 2
            )
            continue
        if about[0] != _FORMAT or about[1] != _structure(template):
            raise TrainingError(
                f"checkpoint {path} was written by another version of simengine, or for other arguments; start the "
                "training again in another folder"
            )
        return jax.tree.unflatten(jax.tree.structure(template), _like(template, leaves)), int(path.stem)
    what = "only damaged checkpoints" if found else "no checkpoint to read"
    raise TrainingError(f"{folder} has {what}; start the training again in another folder")


def _read(path: Path) -> tuple[list[str], list[np.ndarray]]:
    """What a checkpoint says about itself, and its arrays. Raises ValueError if its checksum is another."""
    if not zipfile.is_zipfile(path):  # NumPy would take it for pickled objects, and advise to trust it
        raise ValueError("it is no whole archive")
    # opened here, since NumPy leaves open a file that it cannot read
    with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
        about = [str(text) for text in file["about"]]
        leaves = [file[f"arr_{k}"] for k in range(len(file.files) - 1)]
    if _digest(leaves) != about[2]:
        raise ValueError("its checksum is another")
    return about, leaves


def _host(leaf: Any) -> np.ndarray:
    """An array on the host. Random keys become their numbers."""
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _like(template: Any, leaves: list[np.ndarray]) -> list[Any]:
    """Arrays as they were before `_host`."""
    pairs = zip(jax.tree.leaves(template), leaves, strict=True)
    return [jax.random.wrap_key_data(jax.numpy.asarray(leaf)) if _is_key(old) else leaf for old, leaf in pairs]


def _is_key(leaf: Any) -> bool:
    return jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _structure(state: Any) -> str:
    """Names, shapes and types of all arrays of a tree, as text."""
    paths = jax.tree_util.tree_flatten_with_path(state)[0]
    return "\n".join(f"{jax.tree_util.keystr(path)} {leaf.shape} {leaf.dtype}" for path, leaf in paths)


def _digest(leaves: list[np.ndarray]) -> str:
    found = hashlib.sha256()
    for leaf in leaves:
        found.update(np.ascontiguousarray(leaf).tobytes())
    return found.hexdigest()


def _folder(folder: Path) -> Path:
    return folder / "checkpoints"


def _all(folder: Path) -> list[Path]:
    return sorted(_folder(folder).glob("[0-9]*.npz"))
