"""Compiled kernels on disk, keyed by everything that determines them.

Many processes may start at once. Each writes a file of its own and renames it atomically, so a reader sees a complete
file or none. On systems with file locks, one process builds and the others wait for it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: every process builds for itself
    fcntl = None  # type: ignore[assignment]


def cache_dir() -> Path:
    """Folder of compiled kernels: $SIMENGINE_CACHE_DIR, or `simengine` in the user's cache folder."""
    chosen = os.environ.get("SIMENGINE_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "simengine"


def digest(*parts: str) -> str:
    """Key of a build: a hash of the parts, which are its sources, compiler, flags and machine."""
    h = hashlib.sha256()
    for part in parts:
        h.update(part.encode())
        h.update(b"\0")
    return h.hexdigest()[:32]


def cached(name: str, build: Callable[[Path], None]) -> Path:
    """Path of a cached file; if it does not exist, it is built under a temporary name and renamed.

    Args:
        name: file name, unique for its content (see `digest`).
        build: writes the file at the path it is given.

    Raises:
        OSError: the cache folder cannot be written.
    """
    path = cache_dir() / name
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with _alone(path):
        if not path.exists():
            _build(path, build)
    return path


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Block other processes and threads that want to build the same file, as far as the system has file locks."""
    if fcntl is None:
        yield
        return
    lock = path.with_name(f".{path.name}.lock")
    with lock.open("w") as file:
        # a network folder may have no locks; then every process builds for itself
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            # a process that waits for a lock file which is then deleted finds the built file
            lock.unlink(missing_ok=True)


def _build(path: Path, build: Callable[[Path], None]) -> None:
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    try:
        build(Path(temporary))
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
