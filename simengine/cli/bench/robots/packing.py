"""Write robots into a folder, each as one MJCF file with the few assets that its physics needs."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np

from simengine.cli.bench.robots.building import build, parents_of, spec_of
from simengine.cli.bench.robots.catalogue import Robot
from simengine.errors import ModelError

_COMPARED = (
    *("body_mass", "body_inertia", "geom_rbound", "geom_pos", "geom_friction", "jnt_range", "dof_armature", "dof_M0"),
    *("tendon_length0", "tendon_stiffness", "actuator_gainprm", "actuator_biasprm", "actuator_length0", "eq_data"),
    *("qpos0", "key_qpos"),
)
"""Fields of the model in which a packed robot must be the robot of the package."""


@dataclass(frozen=True)
class Packed:
    """A robot in the folder.

    Attributes:
        robot: its name.
        bytes: size of its files.
        meshes: number of meshes among them.
    """

    robot: str
    bytes: int
    meshes: int


def pack(robot: Robot, folder: Path, largest: float = float("inf")) -> Packed:
    """Write a robot of an installed package into a folder of packed robots, and compare it with the original.

    Args:
        robot: the robot.
        folder: the folder. The robot's own folder in it is replaced.
        largest: largest size of its files [bytes].

    Raises:
        UnknownModelError: the package is not installed.
        ModelError: the robot could not be built, its files are too large, or what was written compiles to another
            model. Nothing of the robot is in the folder then.
    """
    place = folder / robot.name
    if place.exists():
        shutil.rmtree(place)
    original = build(robot, Path(place / "no folder of packed robots"))
    place.mkdir(parents=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about empty prefixes, which the comparison below makes harmless
        spec = spec_of(robot)
        spec.compile()  # leaves out what is only seen
        root = ElementTree.fromstring(spec.to_xml())
    _remove_seen(root)
    meshes = _copy_meshes(root, _folders(robot, spec), place)
    ElementTree.ElementTree(root).write(place / "robot.xml", encoding="utf-8")
    size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
    try:
        if size > largest:
            raise ModelError(f"robot {robot.name!r} takes {size / 2**20:.1f} MiB; it is packed only if it is named")
        _check(robot, original, build(robot, folder))
    except ModelError:
        shutil.rmtree(place)
        raise
    return Packed(robot.name, size, meshes)


def _remove_seen(root: ElementTree.Element) -> None:
    """Remove skins, and classes of defaults that stand there twice because a part was attached twice."""
    for parent in list(root.iter()):
        for skin in parent.findall("skin"):
            parent.remove(skin)
    known: dict[str, str] = {}
    for parent in list(root.iter("default")):
        for child in parent.findall("default"):
            text = ElementTree.tostring(child, encoding="unicode").strip()
            if known.setdefault(child.get("class", ""), text) is not text:
                parent.remove(child)


def _folders(robot: Robot, spec: mujoco.MjSpec) -> list[Path]:
    """Folders in which the files of meshes may be."""
    own = Path(spec.modelfiledir)
    return [own / spec.meshdir, own, Path(spec.meshdir), *parents_of(robot)]


def _copy_meshes(root: ElementTree.Element, folders: Sequence[Path], place: Path) -> int:
    """Copy the files of meshes to the folder `assets`, and let the model name them there. Returns their number."""
    written: dict[Path, str] = {}
    for mesh in root.iter("mesh"):
        if file := mesh.get("file"):
            source = next((folder / file for folder in folders if (folder / file).is_file()), None)
            if source is None:
                raise ModelError(f"mesh file {file!r} was not found beside the model; install the package anew")
            if source not in written:
                written[source] = f"{len(written)}_{source.name}"
                (place / "assets").mkdir(exist_ok=True)
                shutil.copyfile(source, place / "assets" / written[source])
            mesh.set("file", written[source])
    for compiler in root.iter("compiler"):
        for name in ("meshdir", "texturedir", "assetdir"):
            compiler.attrib.pop(name, None)
        compiler.set("meshdir", "assets")
    return len(written)


def _check(robot: Robot, original: mujoco.MjModel, packed: mujoco.MjModel) -> None:
    counts = ("nq", "nv", "nu", "na", "ngeom", "ntendon", "neq", "nkey", "nexclude", "npair")
    differing = [name for name in counts if getattr(original, name) != getattr(packed, name)]
    options = ("timestep", "solver", "cone", "integrator", "iterations", "impratio", "disableflags", "enableflags")
    differing += [name for name in options if getattr(original.opt, name) != getattr(packed.opt, name)]
    differing = differing or [
        name
        for name in _COMPARED
        if not np.allclose(getattr(original, name), getattr(packed, name), rtol=1e-4, atol=1e-8)
    ]
    if differing:
        raise ModelError(
            f"packed robot {robot.name!r} differs from that of {robot.package} in {', '.join(differing)}; leave it out"
        )
