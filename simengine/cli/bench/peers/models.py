"""Models of comparisons by name, and the sets of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from simengine.cli.bench.peers.problem import Named
from simengine.cli.bench.robots import ROBOTS, build, missing, robot_names, start_keyframe
from simengine.cli.options.errors import UsageError
from simengine.errors import UnknownModelError, did_you_mean
from simengine.loading import model_names, model_path
from simengine.model.compiling import compile_model, is_mjcf_text
from simengine.zoo import PILES, pile_xml, random_robot

SETS: dict[str, tuple[str, ...]] = {
    "robots": tuple(robot_names()),
    "gymnasium": (
        *("ant", "half_cheetah", "hopper", "humanoid", "humanoidstandup", "inverted_double_pendulum"),
        *("inverted_pendulum", "pusher_v5", "reacher", "swimmer", "walker2d_v5"),
    ),
    "heaps": ("pile:sphere:24", "pile:box:24", "pile:mixed:10", "pile:mixed:24", "pile:mixed:100"),
}

_SETTLING_STEPS, _SETTLING_ITERATIONS = 300, 8


def chosen_models(names: Sequence[str], sets: Sequence[str], folder: Path | None) -> tuple[list[Named], dict[str, str]]:
    """Load models, and return for robots of a set that are not installed why they are left out, by name.

    Args:
        names: names of robots, of models of `load_model`, `pile:KIND:BODIES`, `robot:SEED`, or files.
        sets: names of SETS.
        folder: folder of packed robots; None for the one that the environment variable names, if any.

    Raises:
        UsageError, UnknownModelError: there is no model of a name, or the package of a robot is not installed.
    """
    absent = {}
    for robot in (robot for robot in ROBOTS if "robots" in sets):
        if reason := missing(robot, folder):
            absent[robot.name] = reason
    of_sets = (name for chosen in sets for name in SETS[chosen] if name not in absent)
    return [_named(name, folder) for name in dict.fromkeys((*names, *of_sets))], absent


def facts(mj: mujoco.MjModel) -> dict[str, Any]:
    """Return the sizes and the options of a model that matter to speed."""
    sizes = {name: int(getattr(mj, name)) for name in ("nq", "nv", "nu", "na", "ngeom", "nmesh", "ntendon", "neq")}
    options = {
        "solver": mujoco.mjtSolver(mj.opt.solver).name.removeprefix("mjSOL_").lower(),
        "cone": mujoco.mjtCone(mj.opt.cone).name.removeprefix("mjCONE_").lower(),
        "integrator": mujoco.mjtIntegrator(mj.opt.integrator).name.removeprefix("mjINT_").lower(),
        "timestep": float(mj.opt.timestep),
        "iterations": int(mj.opt.iterations),
        "ls_iterations": int(mj.opt.ls_iterations),
        "tolerance": float(mj.opt.tolerance),
    }
    return sizes | options


def _named(name: str, folder: Path | None) -> Named:
    for robot in ROBOTS:
        if robot.name == name:
            mj, scatter = build(robot, folder), (0.02, 0.0 if robot.still else 0.1)
            key = start_keyframe(robot, mj)
            return Named(name, mj, mj.key_qpos[key].copy() if key >= 0 else mj.qpos0.copy(), scatter)
    if name.startswith("pile:"):
        return _pile(name)
    if name.startswith("robot:"):
        return _plain(name, random_robot(_number(name, name.removeprefix("robot:"))))
    try:
        return _plain(name, name)
    except UnknownModelError as error:
        if Path(name).suffix or Path(name).name != name:
            raise
        known = (*robot_names(), *model_names())
        raise UsageError(
            f"no model {name!r}{did_you_mean(name, known)}; give a robot ({', '.join(robot_names())}), a name of "
            "`simengine info`, pile:KIND:BODIES, robot:SEED, or the path of a file"
        ) from error


def _plain(name: str, source: str) -> Named:
    mj = compile_model(source if is_mjcf_text(source) else model_path(source))
    return Named(name, mj, mj.qpos0.copy())


def _pile(name: str) -> Named:
    """A heap at rest. MuJoCo lets it fall, with few iterations of a cheap solver."""
    kind, _, bodies = name.removeprefix("pile:").partition(":")
    if kind not in PILES:
        raise UsageError(f"no heap of {kind!r}{did_you_mean(kind, PILES)}; give pile:KIND:BODIES, {', '.join(PILES)}")
    mj = mujoco.MjModel.from_xml_string(pile_xml(_number(name, bodies), kind))
    solver, iterations = mj.opt.solver, mj.opt.iterations
    mj.opt.solver, mj.opt.iterations = mujoco.mjtSolver.mjSOL_CG, _SETTLING_ITERATIONS
    data = mujoco.MjData(mj)
    mujoco.mj_step(mj, data, _SETTLING_STEPS)
    mj.opt.solver, mj.opt.iterations = solver, iterations
    return Named(name, mj, np.array(data.qpos), scatter=(0.0005, 0.005))


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"model {name!r} does not end with a whole number; give pile:KIND:BODIES or robot:SEED")
    return int(text)
