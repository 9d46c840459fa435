"""Where the checkout is, and what processes started by tests need to import its packages."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = [ROOT, *(ROOT / folder for folder in ("scheduler", "envs", "training", "configs"))]
"""Folders that hold the packages."""

PYTHONPATH = os.pathsep.join((*map(str, SOURCES), *filter(None, [os.environ.get("PYTHONPATH")])))
"""These, and after them what the tests' own process was given."""
