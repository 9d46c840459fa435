"""The examples run, and do what they say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from simengine import load_model
from tests.helpers import pages

EXAMPLES = Path(__file__).parents[2] / "examples"


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


def test_picture_shows_robots_that_move(tmp_path: Path) -> None:
    if reason := pages.without_opengl():
        pytest.skip(reason)
    file = tmp_path / "robots.webp"
    options = "--robots 3 --seconds .4 --fps 5 --size 160 96 --backend host"
    pages.run_in_shell(f"python {EXAMPLES / 'picture.py'} {file} {options}", tmp_path, timeout=300)
    with Image.open(file) as picture:
        assert (picture.n_frames, picture.size) == (2, (160, 96))
        frames = []
        for number in range(2):
            picture.seek(number)
            frames.append(np.asarray(picture.convert("RGB"), dtype=float))
    assert np.abs(frames[1] - frames[0]).max() > 50
