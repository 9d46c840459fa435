"""Files with a flipped bit, torn files, and files whose loading would run code."""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from benchmarks.faults.outcome import Outcomes, finished, started
from simengine import Simulation, load_model
from simengine.cli.recordings.trajectory import Trajectory
from simengine_scheduler.native.cache import cached
from simengine_training import checkpoint
from simengine_training.errors import TrainingError
from simengine_training.numpy_policy import NumpyPolicy

REFUSALS = (ValueError, TrainingError)
"""What reading a damaged file may raise."""


class Kind(NamedTuple):
    """A kind of file.

    Attributes:
        name: what it is.
        path: a whole one.
        read: reads it, and returns what it holds in a form that can be compared. May raise one of REFUSALS.
    """

    name: str
    path: Path
    read: Callable[[], Any]


def kinds(folder: Path) -> list[Kind]:
    """One whole file of each kind, made in a folder."""
    return [_state(folder), _trajectory(folder), _policy(folder), _checkpoint(folder), _kernel(folder)]


def flipped(kind: Kind, trials: int, seed: int) -> Outcomes:
    """Flip a bit at a random place, again and again."""
    rng, whole = np.random.default_rng(seed), kind.path.read_bytes()

    def damaged() -> bytes:
        place, content = int(rng.integers(8 * len(whole))), bytearray(whole)
        content[place // 8] ^= 1 << place % 8
        return bytes(content)

    return _damaged("a flipped bit", kind, trials, damaged)


def torn(kind: Kind, trials: int, seed: int) -> Outcomes:
    """Cut the file off at a random place, again and again."""
    rng, whole = np.random.default_rng(seed), kind.path.read_bytes()
    return _damaged("a torn file", kind, trials, lambda: whole[: int(rng.integers(len(whole)))])


def with_code(kind: Kind, folder: Path) -> Outcomes:
    """Replace the file by archives whose loading would run code: with a pickled entry, and a pickle as such."""
    out, whole, mark = Outcomes("a file that would run code", kind.name), kind.path.read_bytes(), folder / "it-ran"

    class Payload:
        def __reduce__(self) -> tuple[Any, tuple[str, str]]:
            return _touch, (str(mark), "")

    with np.load(kind.path, allow_pickle=False) as archive:
        entries = dict(archive)
    for name in (*entries, "more"):
        with kind.path.open("wb") as file:
            np.savez(file, **{**entries, name: np.array([Payload()], dtype=object)})  # type: ignore[arg-type]
        _try(kind, None, out)
    kind.path.write_bytes(pickle.dumps(Payload()))
    _try(kind, None, out)
    kind.path.write_bytes(whole)
    if mark.exists():
        out.wrong.append(f"loading a {kind.name} ran code")
    return out


def _touch(path: str, text: str) -> None:
    Path(path).write_text(text, encoding="utf-8")


def _damaged(fault: str, kind: Kind, trials: int, damaged: Callable[[], bytes]) -> Outcomes:
    out, whole, expected = Outcomes(fault, kind.name), kind.path.read_bytes(), kind.read()
    for _ in range(trials):
        kind.path.write_bytes(damaged())
        _try(kind, expected, out)
        kind.path.write_bytes(whole)
    return out


def _try(kind: Kind, expected: Any, out: Outcomes) -> None:
    """Read a damaged file. With `expected` None nothing may be read from it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = kind.read()
        except REFUSALS as error:
            if "\n" in str(error):
                out.wrong.append(f"{kind.name}: more than one line: {error}")
            else:
                out.found += 1
            return
        except Exception as error:
            out.wrong.append(f"{kind.name}: {type(error).__name__}: {error}")
            return
    if expected is None and not caught:
        out.wrong.append(f"{kind.name}: something was read")
    elif expected is not None and found != expected:
        out.wrong.append(f"{kind.name}: something else was read")
    elif caught:
        out.recovered += 1
    else:
        out.harmless += 1


def _state(folder: Path) -> Kind:
    path, sim = folder / "state.npz", Simulation(load_model("inverted_double_pendulum"), 4, backend="host")
    sim.step(5)
    sim.save_state(path)

    def read() -> list[bytes]:
        sim.reset()
        sim.load_state(path)
        return [array.tobytes() for part in sim.full_state() for arrays in part.values() for array in arrays.values()]

    return Kind("saved state", path, read)


def _trajectory(folder: Path) -> Kind:
    path = folder / "run.npz"
    arguments = ["run", "inverted_pendulum", "--backend", "host", "--worlds", "2", "--steps", "40", "--save", str(path)]
    code, said = finished(started(arguments, folder))
    if code:
        raise RuntimeError(f"no trajectory to damage: {said}")
    return Kind("trajectory", path, lambda: {name: a.tobytes() for name, a in Trajectory(path).arrays.items()})


def _policy(folder: Path) -> Kind:
    rng, path = np.random.default_rng(0), folder / "policy.npz"
    NumpyPolicy(
        environment="simengine/Own-v0",
        mean=np.zeros(4),
        deviation=np.ones(4),
        limit=5.0,
        activation="tanh",
        weights=(rng.normal(size=(4, 8)), rng.normal(size=(8, 1))),
        biases=(np.zeros(8), np.zeros(1)),
        low=-np.ones(1),
        high=np.ones(1),
    ).save(path)

    def read() -> list[bytes]:
        found = NumpyPolicy.load(path)
        arrays = (found.mean, found.deviation, *found.weights, *found.biases, found.low, found.high)
        return [f"{found.environment} {found.limit} {found.activation}".encode(), *(a.tobytes() for a in arrays)]

    return Kind("policy", path, read)


def _checkpoint(folder: Path) -> Kind:
    """Two checkpoints with equal numbers: where the newest is damaged, the one before it is taken, with a warning."""
    state = {"weights": np.arange(60.0), "steps": np.array(3)}
    checkpoint.save(folder, state, 1)
    path = checkpoint.save(folder, state, 2)

    def read() -> list[bytes]:
        return [leaf.tobytes() for leaf in checkpoint.restore(folder, state)[0].values()]

    return Kind("checkpoint", path, read)


def _kernel(folder: Path) -> Kind:
    """A file in the cache of kernels: where it is damaged, it is built again, with a warning."""
    content = np.random.default_rng(0).bytes(4000)

    def build(target: Path) -> None:
        target.write_bytes(content)

    def read() -> bytes:
        with patch.dict(os.environ, SIMENGINE_CACHE_DIR=str(folder / "cache")):
            return cached("kernel.so", build).read_bytes()

    read()
    return Kind("compiled kernel", folder / "cache" / "kernel.so", read)
