"""Files that are replaced as a whole, and what reading a damaged one may raise."""

from __future__ import annotations

import struct
import zipfile
import zlib

from simengine_scheduler.native.files import replaced

__all__ = ["UNREADABLE", "replaced"]

UNREADABLE = (
    *(OSError, ValueError, KeyError, EOFError, MemoryError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error, struct.error),
)
"""What reading an archive of NumPy arrays may raise. A single bit may make an entry large, encrypted or unknown."""
