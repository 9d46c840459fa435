"""Paths of the checkout, and the import path for processes that tests start."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = [ROOT, *(ROOT / folder for folder in ("scheduler", "envs", "training", "configs"))]
"""Folders that hold the packages."""

PYTHONPATH = os.pathsep.join((*map(str, SOURCES), *filter(None, [os.environ.get("PYTHONPATH")])))
"""The import path: SOURCES, then the PYTHONPATH of the tests' own process."""
