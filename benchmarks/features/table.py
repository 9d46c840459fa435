"""The page `docs/features.md`: the features that simengine, MuJoCo and the loaders of peers accept."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path

from benchmarks.features.engines import PEERS, refusal, simengine_loader
from benchmarks.features.probes import PROBES
from benchmarks.features.refused import REFUSED
from simengine import UnsupportedModelError, load_model

_ROOT = Path(__file__).parents[2]
PAGE = _ROOT / "docs" / "features.md"
RESULTS = _ROOT / "benchmarks" / "results" / "features_of_peers.json"

_INTRODUCTION = """# Features

`python -m benchmarks.features table` writes this page. Every row is a small model that needs the feature
(`benchmarks/features/probes.py`). A tick says that the engine's own loader takes that model.

simengine refuses what it does not have when the model is loaded, by name and element ([what is
refused](#what-is-refused)). `simengine check MODEL.xml` compares what it loads with MuJoCo, stage by stage. A tick of
another engine says only that its loader raises no error. Brax loads models through MJX.

The loaders asked were those of {versions}, on {date}.
"""


def page() -> str:
    """The text of the page."""
    peers = json.loads(RESULTS.read_text())
    load = simengine_loader()
    names = ["mujoco", *PEERS]
    versions = ", ".join(f"{'MuJoCo' if n == 'mujoco' else n} {peers['versions'][n]}" for n in names)
    lines = [_INTRODUCTION.format(versions=versions, date=peers["date"])]
    for group, probes in groupby(PROBES, key=lambda probe: probe.group):
        lines += [
            f"## {group}",
            "",
            f"| | simengine | MuJoCo | {' | '.join(PEERS)} |",
            "|---|" + ":-:|" * (2 + len(PEERS)),
        ]
        for probe in probes:
            others = [peers["refusals"][peer][f"{group}/{probe.feature}"] for peer in PEERS]
            ticks = ["" if text else "✓" for text in (refusal(load, probe.mjcf), "", *others)]
            lines.append(f"| {probe.feature} | {' | '.join(ticks)} |")
        lines.append("")
    lines += ["## What is refused", "", "Each of these ends with an `UnsupportedModelError`, which says:", ""]
    lines += ["| feature | words of the refusal |", "|---|---|"]
    lines += [f"| {feature} | {'; '.join(refused(mjcf))} |" for feature, mjcf in REFUSED.items()]
    return "\n".join(lines) + "\n"


def refused(mjcf: str) -> tuple[str, ...]:
    """The elements that simengine names when it refuses a model, and the feature of each; empty if it does not."""
    try:
        load_model(mjcf)
    except UnsupportedModelError as error:
        return error.features
    return ()
