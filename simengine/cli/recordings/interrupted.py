"""What an interrupted run leaves behind: a checkpoint in a JSON file, and checksums of the files beside it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simengine.files import replaced

_SUM = "checksum"
_AT_ONCE = 2**20  # bytes of a file that are in memory at one time


def write_checkpoint(path: Path, entries: Mapping[str, Any]) -> None:
    """Write entries, and their checksum."""
    with replaced(path) as file:
        file.write(json.dumps({**entries, _SUM: _of_entries(entries)}).encode())


def read_checkpoint(path: Path) -> dict[str, Any]:
    """What `write_checkpoint` wrote.

    Raises:
        ValueError: the file is damaged.
    """
    try:
        entries = json.loads(path.read_bytes())
        whole = isinstance(entries, dict) and entries.pop(_SUM, None) == _of_entries(entries)
    except ValueError:  # no text, no JSON, or a number that is too long
        whole = False
    if not whole:
        raise damaged(path)
    return dict(entries)


def checksum(path: Path, nbytes: int) -> int:
    """CRC-32 of the first `nbytes` of a file.

    Raises:
        ValueError: the file is shorter, or there is none.
    """
    found, left = 0, nbytes
    try:
        with path.open("rb") as file:
            while left and (part := file.read(min(left, _AT_ONCE))):
                found, left = zlib.crc32(part, found), left - len(part)
    except FileNotFoundError:
        left = max(left, 1)
    if left:
        raise damaged(path)
    return found


def damaged(path: Path) -> ValueError:
    """The error that a file of an interrupted run is damaged."""
    return ValueError(f"{str(path)!r} is damaged; remove its folder to start the run over")


def _of_entries(entries: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(entries, sort_keys=True).encode())
