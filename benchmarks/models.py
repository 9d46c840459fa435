"""Models by name for benchmarks: Gymnasium's files, `robot:SEED`, `pile:KIND:BODIES` as in `piles`, or a path."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import mujoco

from simengine.zoo import pile_xml, random_robot

ASSETS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"


def compiled(name: str) -> mujoco.MjModel:
    """The model, with Newton where it says PGS: MuJoCo Warp has no PGS, and both are given the same."""
    if name.startswith("robot:"):
        mj = mujoco.MjModel.from_xml_string(random_robot(int(name.removeprefix("robot:"))))
    elif name.startswith("pile:"):
        _, kind, bodies = name.split(":")
        mj = mujoco.MjModel.from_xml_string(pile_xml(int(bodies), kind))
    else:
        path = Path(name) if name.endswith(".xml") else ASSETS / f"{name}.xml"
        mj = mujoco.MjModel.from_xml_path(str(path))
    if mj.opt.solver == mujoco.mjtSolver.mjSOL_PGS:
        mj.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    return mj


def short(name: str) -> str:
    """A name for tables: a file outside Gymnasium under its folder's and its own name, not where it lies."""
    path = Path(name)
    return f"{path.parent.name}/{path.stem}" if name.endswith(".xml") else name
