"""Models by name for benchmarks: Gymnasium's files, `robot:SEED`, `pile:KIND:BODIES` as in `piles`, or a path."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import mujoco

from simengine.zoo import pile_xml, random_robot

ASSETS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"


def compiled(name: str) -> mujoco.MjModel:
    """Compile a model. PGS is replaced by Newton, since MuJoCo Warp has no PGS and must solve the same problem."""
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
    """A name for tables. A file that is not Gymnasium's has the names of its folder and file, without the path."""
    path = Path(name)
    return f"{path.parent.name}/{path.stem}" if name.endswith(".xml") else name
