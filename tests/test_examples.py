"""The examples run, and do what they say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from simengine import load_model

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_evolution_finds_robots_that_get_further(tmp_path: Path) -> None:
    """The best parents go on, so the best of a generation hardly falls; starts differ a little."""
    model, picture = tmp_path / "best.xml", tmp_path / "history.png"
    options = ["--population", "8", "--generations", "4", "--worlds", "2", "--seconds", "1", "--backend", "host"]
    command = [sys.executable, str(EXAMPLES / "evolve.py"), *options, "--json", "--save", model, "--plot", picture]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    best = [row["best"] for row in found["history"]]
    assert len(best) == 4
    assert best[-1] > best[0]
    assert load_model(model).nu == found["motors"]
    assert picture.stat().st_size > 1000
