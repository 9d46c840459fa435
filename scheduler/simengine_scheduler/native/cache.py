"""Compiled kernels on disk, keyed by everything that determines them.

Many processes may start at once. Each writes a file of its own and renames it atomically, so a reader sees a complete
file or none. On systems with file locks, one process builds and the others wait for it.

Machine code is run by whoever loads it. Beside each file stands its checksum, and a file that does not match is built
again. Nothing is read that other users can write. Where the folder cannot be used, a process says so and builds into a
temporary folder of its own.

Each build is logged at level INFO by the logger of this module's name.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from .files import replaced

try:
    import fcntl
except ImportError:  # Windows: every process builds for itself
    fcntl = None  # type: ignore[assignment]

_LOG = logging.getLogger(__name__)
_WRITE_OF_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_ABANDONED = 3600.0  # seconds after which a lock or an unfinished file is taken for one of a process that was killed


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
    """Path of a cached file, which is built if there is none or if it is damaged.

    Args:
        name: file name, unique for its content (see `digest`).
        build: writes the file at the path it is given.

    Warns:
        UserWarning: the cache folder cannot be used, or the file was damaged.
    """
    path = cache_dir() / name
    if reason := _distrust(path.parent):
        return _temporary(path, reason, lambda: _made(name, build))
    if _is_whole(path):
        return path
    with ExitStack() as stack:
        try:
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            stack.enter_context(_alone(path))
        except OSError as error:
            return _temporary(path, str(error.strerror), lambda: _made(name, build))
        if _is_whole(path, warn=True):
            return path
        _sweep(path.parent)
        built = _made(name, build)
        try:
            _store(path, built)
        except OSError as error:
            return _temporary(path, str(error.strerror), lambda: built)
    return path


class _Built(NamedTuple):
    """Content and permissions of a file."""

    content: bytes
    mode: int


def _made(name: str, build: Callable[[Path], None]) -> _Built:
    _LOG.info("compiling %s", name)
    with tempfile.TemporaryDirectory(prefix="simengine-") as folder:
        target = Path(folder) / name
        build(target)
        return _Built(target.read_bytes(), stat.S_IMODE(target.stat().st_mode))


def _store(path: Path, built: _Built) -> None:
    """Write a file and its checksum so that other users can write neither."""
    checksum = hashlib.sha256(built.content).hexdigest().encode()
    for target, content in ((_checksum_of(path), checksum), (path, built.content)):
        with replaced(target) as file:
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), built.mode & ~_WRITE_OF_OTHERS)
            file.write(content)


def _checksum_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _is_whole(path: Path, warn: bool = False) -> bool:
    """Whether a file has the content that was built, and nobody else could write it."""
    if _distrust(path) or _distrust(_checksum_of(path)):
        return False
    try:
        content, expected = path.read_bytes(), _checksum_of(path).read_bytes()
    except OSError:
        return False
    whole = hashlib.sha256(content).hexdigest().encode() == expected
    if warn and not whole:
        warnings.warn(f"{str(path)!r} was damaged, so it is built again", stacklevel=2)
    return whole


def _distrust(path: Path) -> str:
    """Why a file or folder may hold what another user wrote; empty if it does not, or if nothing is there."""
    if not hasattr(os, "geteuid"):  # Windows keeps the folders of its users apart
        return ""
    try:
        found = path.stat()
    except OSError:
        return ""
    if found.st_uid not in (os.geteuid(), 0):
        return f"it belongs to user {found.st_uid}"
    return "other users can write to it" if found.st_mode & _WRITE_OF_OTHERS else ""


def _temporary(path: Path, reason: str, built: Callable[[], _Built]) -> Path:
    """The file in a folder of this process, instead of in a cache that cannot be used for some reason."""
    own = _own_folder(path.parent, reason) / path.name
    if not own.exists():
        _store(own, built())
    return own


_OWN: dict[Path, tempfile.TemporaryDirectory[str]] = {}
_MAKING = Lock()


def _own_folder(instead_of: Path, reason: str) -> Path:
    """A folder that goes with the process. The first call for a cache folder says why."""
    with _MAKING:
        known = instead_of in _OWN
        if not known:
            _OWN[instead_of] = tempfile.TemporaryDirectory(prefix="simengine-kernels-", ignore_cleanup_errors=True)
    if not known:
        warnings.warn(
            f"the folder of compiled kernels {str(instead_of)!r} cannot be used ({reason}), so that each program "
            "compiles its own; set SIMENGINE_CACHE_DIR to a folder that only you can write",
            stacklevel=2,
        )
    return Path(_OWN[instead_of].name)


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


@cache
def _sweep(folder: Path) -> None:
    """Remove what processes left that were killed, once in a process."""
    for path in [*folder.glob(".*.lock"), *folder.glob("*.part")]:
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _ABANDONED:
                path.unlink()
