"""Small models of one kind each: on a CPU beside mujoco.rollout, and on a GPU before and after changes of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .markdown import ratio, speed, table, three_digits
from .results import Result

KINDS = {
    "terrain": "a height field under every shape",
    "rubble": "meshes, cylinders and boxes that lie on each other",
    "dual": "PGS, elliptic cones, several islands",
    "rollers": "conjugate gradients, rolling friction",
    "ragdoll": "ball joints, the implicit integrator",
    "linkage": "closed chains, elliptic cones, noslip",
    "ropes": "spatial tendons around geoms",
    "contact_parameters": "margins, gaps and solref, RK4",
    "crates": "boxes",
    "mixed_tree": "joints of every type",
    "quadruped": "a robot of capsules",
    "biped": "a robot with implicit damping",
    "grasp": "a gripper",
    "bin": "meshes of few and of many vertices in a bin",
    "bowl": "ellipsoids in a bowl of boxes",
    "car": "wheels of cylinders on a height field",
    "cloth": "25 spheres that connections hold together",
    "cylinders": "a tower of cylinders",
    "drawer": "meshes in a drawer, elliptic cones",
    "field": "balls, a capsule, a box, a cylinder and an ellipsoid on a rough height field",
    "octopus": "eight arms with 24 motors in water",
    "snake_12": "a chain of 12 dofs",
    "snake_16": "a chain of 16 dofs, elliptic cones",
    "snake_24": "a chain of 24 dofs, RK4",
    "snake_32": "a chain of 32 dofs",
    "snake_36": "a chain of 31 links, PGS",
    "stairs": "a quadruped of many geoms on stairs of boxes",
    "tendon_hand": "a hand that tendons close around a ball",
    "three_arms": "three arms around a table with boxes, implicitfast",
    "pile:sphere:50": "a heap of 50 spheres",
    "pile:sphere:100": "a heap of 100 spheres",
    "pile:box:100": "a heap of 100 boxes",
}
"""What each model is there for, by the name of its file or its own."""


def kinds_table(result: Result) -> str:
    """Steps per second of both engines, the models with the least ratio first."""
    ours = {row["model"]: row for row in result["rows"] if row["engine"] == "simengine"}
    peers = [row for row in result["rows"] if row["engine"] != "simengine"]
    lines = []
    for peer in sorted(peers, key=lambda row: float(row["ratio"])):
        own, name = ours[peer["model"]], Path(peer["model"]).stem
        speeds = (speed(own["steps_per_s"]), speed(peer["steps_per_s"]))
        lines.append([name, KINDS[name], *speeds, ratio(own["steps_per_s"] / peer["steps_per_s"])])
    return table(["model", "what it has", "simengine", peers[0]["engine"], "ratio"], lines, words=2)


def held(result: Result, enough: float) -> str:
    """For how many models the ratio is enough, such as "9 of 14 models"."""
    ratios = [row["ratio"] for row in result["rows"] if "ratio" in row]
    return f"{sum(one >= enough for one in ratios)} of {len(ratios)} models"


_FORMS = {"before": "before", "one problem": "before", "after": "after", "islands": "after"}
"""Names of forms of kernels in results: those before a change, and those after it."""


def gained(results: Sequence[Result]) -> str:
    """Microseconds a step with kernels before and after a change, by model and number of worlds.

    Args:
        results: results with rows of both forms. A model is left out if it keeps its form because that is faster
            with every number of worlds.
    """
    times: dict[str, dict[int, dict[str, float]]] = {}
    for row in (row for result in results for row in result["rows"] if row["form"] in _FORMS):
        case = times.setdefault(row["model"], {}).setdefault(row["worlds"], {})
        case[_FORMS[row["form"]]] = row["us_per_step"]
    lines = []
    for model, sizes in times.items():
        both = {worlds: (of["before"], of["after"]) for worlds, of in sorted(sizes.items()) if len(of) == 2}
        if any(before > after for before, after in both.values()):
            lines += [
                [Path(model).stem, f"{worlds:,}", three_digits(before), three_digits(after), ratio(before / after)]
                for worlds, (before, after) in both.items()
            ]
    return table(["model", "worlds", "before [us]", "after [us]", "gain"], lines)
