"""Files of failing models: MJCF, with a comment that says how it was found and what was wrong."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from simengine.fuzz.judge import Outcome


class Case(NamedTuple):
    """A model of a corpus.

    Attributes:
        path: its file.
        text: MJCF.
        seed: of the states that are compared.
    """

    path: Path
    text: str
    seed: int


def save(folder: Path, text: str, seed: int, how: str, outcome: Outcome) -> Path:
    """Write a model into a folder, which is made if there is none. Equal models have equal names.

    Args:
        folder: the folder.
        text: MJCF.
        seed: of the states.
        how: the command that found it.
        outcome: what was wrong.
    """
    folder.mkdir(parents=True, exist_ok=True)
    part = re.sub(r"\W+", "_", next(iter(outcome.fields))) if outcome.fields else outcome.kind
    path = folder / f"{part}_{hashlib.sha256(text.encode()).hexdigest()[:8]}.xml"
    # two dashes would end the comment
    said = "\n  ".join(line.replace("--", "- -") for line in outcome.reasons)
    path.write_text(f"<!-- seed: {seed}\n  found by: {how.replace('--', '')}\n  {said} -->\n{text}\n", encoding="utf-8")
    return path


def read(path: Path) -> Case:
    """Read a model. One without a seed in its comment has seed 0."""
    text = path.read_text(encoding="utf-8")
    found = re.search(r"<!-- seed: (\d+)", text)
    return Case(path, text, int(found[1]) if found else 0)


def read_all(folder: Path) -> list[Case]:
    """All models of a folder, sorted by their names."""
    return [read(path) for path in sorted(folder.glob("*.xml"))]
