"""Legged robots: where their models come from, which parts are feet, and how they stand."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import mujoco
import numpy as np

import simengine
from simengine.errors import did_you_mean
from simengine.zoo import model_path
from simengine_envs.tasks.ground import lay_ground
from simengine_envs.tasks.published import published_spec

Vector = tuple[float, float, float]

_TIMESTEP = 0.004


class Drive(NamedTuple):
    """Position actuators of the joints whose names contain a word.

    Attributes:
        home: angle in the home pose [rad].
        kp, kv: stiffness [N m/rad] and damping [N m s/rad].
        torque: greatest torque [N m].
    """

    home: float
    kp: float
    kv: float
    torque: float


class Legged(NamedTuple):
    """A legged robot.

    Attributes:
        feet: sites at the feet.
        roughness: height of the rough ground that it can walk on [m].
        package: name of the robot in MuJoCo Menagerie and in mjlab; None for a robot of `simengine.zoo`.
        drives: for robots of a package, by a word in the names of their joints; the first that fits is taken.
        soles: for robots of a package, positions of the spheres of a foot in the frame of its body; none for one sphere
            at the site.
        sole_radius: radius of the spheres [m].
    """

    feet: tuple[str, ...]
    roughness: float
    package: str | None = None
    drives: Mapping[str, Drive] = {}
    soles: tuple[Vector, ...] = ()
    sole_radius: float = 0.02


ROBOTS: dict[str, Legged] = {
    "quadruped": Legged(("front_left", "front_right", "hind_left", "hind_right"), 0.12),
    "biped": Legged(("left_foot", "right_foot"), 0.1),
    "go1": Legged(
        ("FL", "FR", "RL", "RR"),
        0.12,
        package="unitree_go1",
        drives={
            "hip": Drive(0.0, 40, 1, 23.7),
            "thigh": Drive(0.9, 40, 1, 23.7),
            "calf": Drive(-1.8, 40, 1, 35.5),
        },
        sole_radius=0.023,
    ),
    "g1": Legged(
        ("left_foot", "right_foot"),
        0.1,
        package="unitree_g1",
        drives={
            "hip_pitch": Drive(-0.3, 100, 3, 88),
            "hip": Drive(0.0, 100, 3, 88),
            "knee": Drive(0.6, 150, 4, 139),
            "ankle_pitch": Drive(-0.3, 40, 2, 50),
            "ankle_roll": Drive(0.0, 40, 2, 50),
            "waist": Drive(0.0, 150, 4, 50),
            "shoulder_pitch": Drive(0.2, 40, 2, 25),
            "elbow": Drive(0.6, 40, 2, 25),
            "": Drive(0.0, 20, 1, 15),
        },
        soles=((-0.05, 0.025, -0.03), (-0.05, -0.025, -0.03), (0.12, 0.03, -0.03), (0.12, -0.03, -0.03)),
        sole_radius=0.006,
    ),
}
"""Robots by name: `quadruped` and `biped` are of `simengine.zoo`, the others of MuJoCo Menagerie or mjlab."""


class Stance(NamedTuple):
    """How a robot stands in its model.

    Attributes:
        qpos, ctrl: coordinates (nq,) and controls (nu,) of the home pose.
        height: of the torso above the feet [m].
        torso: id of the body with the free joint.
        sites, bodies: ids of the feet's sites and of their bodies, (feet,) each.
        ground: heights of the rough ground (rows, columns) [m]; None on flat ground.
    """

    qpos: np.ndarray
    ctrl: np.ndarray
    height: float
    torso: int
    sites: np.ndarray
    bodies: np.ndarray
    ground: np.ndarray | None


def legged(name: str) -> Legged:
    """A robot by name. Raises ValueError if there is none."""
    if name not in ROBOTS:
        raise ValueError(f"there is no legged robot {name!r}{did_you_mean(name, ROBOTS)}; give one of {list(ROBOTS)}")
    return ROBOTS[name]


@lru_cache(maxsize=8)
def legged_model(name: str, rough: bool) -> simengine.Model:
    """A robot on its ground, with the keyframe `home` in which it stands on the highest point below it.

    Args:
        name: one of `ROBOTS`.
        rough: whether the ground is a height field.

    Raises:
        ImportError: neither MuJoCo Menagerie nor mjlab is installed, one of which the robot needs.
        FileNotFoundError: MuJoCo Menagerie cannot provide the robot's files, and mjlab is not installed.
    """
    robot = legged(name)
    if robot.package:
        spec = _with_feet(published_spec(name, robot.package), robot)
    else:
        spec = mujoco.MjSpec.from_file(str(model_path(name)))
    lay_ground(spec, robot.roughness * rough)
    return simengine.load_model(spec.compile())


def _with_feet(spec: mujoco.MjSpec, robot: Legged) -> mujoco.MjSpec:
    """A robot of another package with actuators, feet and a home pose of our own, so that its version matters little.

    Only the feet touch the ground.
    """
    spec.option.timestep = _TIMESTEP
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.cone, spec.option.impratio = mujoco.mjtCone.mjCONE_PYRAMIDAL, 1
    spec.option.iterations, spec.option.ls_iterations = 20, 20
    for part in (*spec.actuators, *spec.sensors, *spec.keys, *spec.excludes):
        spec.delete(part)
    for geom in spec.geoms:
        geom.contype = geom.conaffinity = 0
    for site in (spec.site(foot) for foot in robot.feet):
        for place in robot.soles or (site.pos,):
            site.parent.add_geom(
                type=mujoco.mjtGeom.mjGEOM_SPHERE,
                size=[robot.sole_radius, 0, 0],
                pos=place,
                mass=0,
                friction=[0.8, 0.02, 0.01],
                priority=1,
            )
    return _with_drives(spec, robot)


def _with_drives(spec: mujoco.MjSpec, robot: Legged) -> mujoco.MjSpec:
    """Add position actuators and the home pose."""
    home = []
    for joint in spec.joints:
        if joint.type == mujoco.mjtJoint.mjJNT_FREE:
            continue
        drive = next(drive for word, drive in robot.drives.items() if word in joint.name)
        home.append(drive.home)
        actuator = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        actuator.set_to_position(kp=drive.kp, kv=drive.kv)
        actuator.ctrllimited, actuator.ctrlrange = True, joint.range
        actuator.forcelimited, actuator.forcerange = True, [-drive.torque, drive.torque]
    key = spec.add_key(name="home", qpos=[0, 0, 0, 1, 0, 0, 0, *home], ctrl=home)
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_kinematics(model, data)
    touching = model.geom_contype != 0
    lowest = float(np.min((data.geom_xpos[:, 2] - model.geom_rbound)[touching]))
    key.qpos = [0, 0, -lowest, 1, 0, 0, 0, *home]
    return spec


def stance_of(name: str, model: simengine.Model) -> Stance:
    """How a robot of `ROBOTS` stands in its model."""
    mj, home = model.mj, model.mj.key("home")
    sites = np.array([mj.site(foot).id for foot in legged(name).feet])
    data = mujoco.MjData(mj)
    data.qpos[:] = home.qpos
    mujoco.mj_kinematics(mj, data)
    torso = int(mj.jnt_bodyid[0])
    height = float(data.xpos[torso, 2] - data.site_xpos[sites, 2].min())
    ground = None
    if mj.nhfield:
        ground = mj.hfield_size[0, 2] * mj.hfield_data.reshape(mj.hfield_nrow[0], mj.hfield_ncol[0])
    return Stance(home.qpos.copy(), home.ctrl.copy(), height, torso, sites, mj.site_bodyid[sites], ground)
