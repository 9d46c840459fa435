"""The committed hashes. `hashes.json` has a hash of each case for each environment key, on a line of its own."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

FILE = Path(__file__).with_name("hashes.json")

Table = dict[str, dict[str, str]]
"""Hashes by environment key and by name of the case."""


def read(path: Path = FILE) -> Table:
    """Read the hashes of a file. The result is empty if there is no file."""
    table: Table = json.loads(path.read_text()) if path.exists() else {}
    return table


def write(table: Table, path: Path = FILE) -> None:
    """Write a file with sorted environments. The cases of an environment have the order of the table."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(dict(sorted(table.items())), indent=1) + "\n")
    os.replace(temporary, path)


def assert_committed(key: str, name: str, found: str, path: Path = FILE) -> None:
    """Compare a case's hash with the committed one. Skip the test if this environment has no committed hashes.

    Raises:
        AssertionError: the committed hash differs, or this case has none.
    """
    command = f"python -m tests.golden.record{' --backend cuda' if key.startswith('cuda') else ''}"
    known = read(path).get(key)
    if known is None:
        pytest.skip(f"no hashes of '{key}' are committed; record them: {command}")
    assert name in known, f"no hash of '{name}' is committed for '{key}'; record it: {command}"
    meant = f"if this change of bits is meant, record it in a commit that says why: {command}"
    assert found == known[name], f"'{name}' has hash {found} and {known[name]} is committed; {meant}"
