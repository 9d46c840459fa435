"""Fixtures that the tests of the commands share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.arm import MJCF


@pytest.fixture
def mjcf(tmp_path: Path) -> Path:
    """The file of an arm."""
    path = tmp_path / "arm.xml"
    path.write_text(MJCF, encoding="utf-8")
    return path
