"""The robots: the package that ships each, where it is inside, and what its file lacks to be stepped."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Servo:
    """Position control of joints whose file has no actuators.

    The stiffness is `inertia * w**2` and the damping `4 * inertia * w`, with `w = 2 * pi * hertz`, as mjlab has it.

    Attributes:
        joints: pattern that matches whole names of joints.
        armature: inertia of the rotor, as the joint feels it [kg m^2, or kg for slide joints].
        effort: largest force [N m, or N for slide joints].
        inertia: inertia for which the gains are chosen [kg m^2 or kg]; None for the armature.
        hertz: natural frequency of the controlled joint [Hz].
    """

    joints: str
    armature: float
    effort: float
    inertia: float | None = None
    hertz: float = 10.0

    @property
    def stiffness(self) -> float:
        """Force by position error [N m/rad, or N/m]."""
        return self._gain_inertia * (2 * math.pi * self.hertz) ** 2

    @property
    def damping(self) -> float:
        """Force by velocity [N m s/rad, or N s/m]."""
        return 4 * self._gain_inertia * 2 * math.pi * self.hertz

    @property
    def _gain_inertia(self) -> float:
        return self.armature if self.inertia is None else self.inertia


@dataclass(frozen=True)
class Robot:
    """A robot, and how its file becomes a model that can be stepped.

    Attributes:
        name: its id.
        package: the distribution that ships it, as pip knows it.
        path: the MJCF file, from the folder in which packages are installed. For robots that the package composes in
            Python, the folder of the package.
        source: one sentence on where the robot comes from and its licence.
        composed: name that `myo_sim` composes the model by, "" for a file.
        gripper: MJCF file that is attached to the body `right_hand`, in the same form as `path`; "" for none.
        keyframe: the file's keyframe from which worlds start; "" for the reference state, changed by the next two.
        height: height of the root body at the start [m]; None for the file's.
        joints: positions of joints at the start: patterns of whole names, and positions [rad, m].
        servos: actuators that the file lacks.
        floor: whether a plane at height 0 is added.
        excluded: two bodies whose geoms touch without depth by design, so that rounding would decide on contacts
            between them; none are made. () for none.
        still: whether worlds must start without velocity, because the file holds bodies by damping.
        elliptic: whether friction cones are elliptic with `impratio` 20, as in robosuite's scenes.
    """

    name: str
    package: str
    path: str
    source: str
    composed: str = ""
    gripper: str = ""
    keyframe: str = ""
    height: float | None = None
    joints: tuple[tuple[str, float], ...] = ()
    servos: tuple[Servo, ...] = field(default=(), repr=False)
    floor: bool = False
    excluded: tuple[()] | tuple[str, str] = ()
    still: bool = False
    elliptic: bool = False


_5020, _7520_14, _7520_22, _4010 = 0.003609725, 0.010177520, 0.025101925, 0.00425
_G1_SERVOS = (
    Servo(".*_(elbow|shoulder_pitch|shoulder_roll|shoulder_yaw|wrist_roll)_joint", _5020, 25),
    Servo(".*_hip_(pitch|yaw)_joint|waist_yaw_joint", _7520_14, 88),
    Servo(".*_(hip_roll|knee)_joint", _7520_22, 139),
    Servo(".*_wrist_(pitch|yaw)_joint", _4010, 5),
    Servo("waist_(pitch|roll)_joint|.*_ankle_(pitch|roll)_joint", 2 * _5020, 50),
)
_G1_START = (
    (".*_hip_pitch_joint", -0.312),
    (".*_knee_joint", 0.669),
    (".*_ankle_pitch_joint", -0.363),
    (".*_elbow_joint", 0.6),
    (".*_shoulder_pitch_joint", 0.2),
    ("left_shoulder_roll_joint", 0.2),
    ("right_shoulder_roll_joint", -0.2),
)
_GO1_SERVOS = (
    Servo(".*_(hip|thigh)_joint", 0.000111842 * 6**2, 23.7),
    Servo(".*_calf_joint", 0.000111842 * 9**2, 35.55),
)
_GO1_START = ((".*_thigh_joint", 0.9), (".*_calf_joint", -1.8), (".*R_hip_joint", 0.1), (".*L_hip_joint", -0.1))
_YAM_SERVOS = (
    Servo("joint1", 0.032, 28, 0.123153, 2),
    Servo("joint2", 0.032, 28, 0.277411, 2),
    Servo("joint3", 0.032, 28, 0.232763, 2),
    Servo("joint4", 0.0018, 10, 0.030154, 2),
    Servo("joint5", 0.0018, 10, 0.009126, 2),
    Servo("joint6", 0.0018, 10, 0.002868, 2),
    Servo("left_finger", 2.603, 38.0, 2.781624, 1),
)
_YAM_START = (
    ("joint2", 1.047),
    ("joint3", 1.05),
    ("joint4", -0.9),
    ("left_finger", 0.01875),
    ("right_finger", -0.01875),
)


def _mjlab(name: str, path: str, maker: str, **more: object) -> Robot:
    source = f"mjlab's MJCF of {maker}; mjlab is Apache-2.0, and the meshes are under the maker's licence beside them."
    return Robot(name, "mjlab", f"mjlab/asset_zoo/robots/{path}", source, floor=True, **more)  # type: ignore[arg-type]


def _suite(name: str, file: str, what: str, **more: object) -> Robot:
    source = f"{what} of dm_control's suite, Apache-2.0."
    return Robot(name, "dm_control", f"dm_control/suite/{file}", source, **more)  # type: ignore[arg-type]


def _robotics(name: str, file: str, what: str, **more: object) -> Robot:
    source = f"{what} of Gymnasium-Robotics, MIT."
    return Robot(name, "gymnasium-robotics", f"gymnasium_robotics/envs/assets/{file}", source, **more)  # type: ignore[arg-type]


def _myo(name: str, composed: str, what: str, keyframe: str = "") -> Robot:
    source = f"{what} of MyoSuite's models, Apache-2.0."
    return Robot(name, "myo_sim", "myo_sim", source, composed=composed, keyframe=keyframe)


def _warp(name: str, file: str, what: str, keyframe: str = "") -> Robot:
    source = f"{what} of MuJoCo Warp's benchmarks, Apache-2.0."
    return Robot(name, "mujoco-warp", f"mujoco_warp/test_data/{file}", source, keyframe=keyframe)


def _arm(name: str, gripper: str, joints: str, *start: float, excluded: tuple[()] | tuple[str, str] = ()) -> Robot:
    kind, assets = name.removesuffix("_arm"), "robosuite/models/assets"
    source = f"robosuite's {kind} with a gripper and torque motors, MIT."
    file, hand = f"{assets}/robots/{kind}/robot.xml", f"{assets}/grippers/{gripper}.xml"
    at = tuple(zip(joints.split(), start, strict=True))
    return Robot(name, "robosuite", file, source, gripper=hand, joints=at, excluded=excluded, elliptic=True)


def _numbered(form: str, first: int = 1) -> str:
    """Names of seven joints."""
    return " ".join(form.format(number) for number in range(first, first + 7))


_UR5E = "shoulder_pan_joint shoulder_lift_joint elbow_joint wrist_1_joint wrist_2_joint wrist_3_joint"

ROBOTS = (
    _mjlab("unitree_g1", "unitree_g1/xmls/g1.xml", "Unitree's G1", height=0.76, joints=_G1_START, servos=_G1_SERVOS),
    _mjlab(
        "unitree_go1", "unitree_go1/xmls/go1.xml", "Unitree's Go1", height=0.278, joints=_GO1_START, servos=_GO1_SERVOS
    ),
    _mjlab("i2rt_yam", "i2rt_yam/xmls/yam.xml", "I2RT's YAM", height=0.01, joints=_YAM_START, servos=_YAM_SERVOS),
    _suite("humanoid_cmu", "humanoid_CMU.xml", "the humanoid of the CMU motion captures"),
    _suite("dog", "dog.xml", "the dog"),
    _robotics("adroit_door", "adroit_hand/adroit_door.xml", "the Adroit hand and a door"),
    _robotics("adroit_hammer", "adroit_hand/adroit_hammer.xml", "the Adroit hand, a hammer and a nail"),
    _robotics("adroit_pen", "adroit_hand/adroit_pen.xml", "the Adroit hand and a pen"),
    _robotics("adroit_relocate", "adroit_hand/adroit_relocate.xml", "the Adroit hand and a ball"),
    _robotics("shadow_hand_block", "hand/manipulate_block.xml", "the Shadow hand and a block"),
    _robotics("fetch_pick_and_place", "fetch/pick_and_place.xml", "the Fetch arm and a box", still=True),
    _myo("myoarm", "myoarm_r", "a right arm and hand with 63 muscles"),
    _myo("myohand", "myohand_r", "a right hand with 39 muscles"),
    _myo("myolegs", "myolegs", "two legs with 80 muscles", "standing"),
    _myo("myolegs26", "myolegs26", "two legs with 26 muscles"),
    _myo("myofullbody", "myofullbody", "a body with 416 muscles", "standing"),
    _warp("n_humanoid", "humanoid/n_humanoid.xml", "three humanoids"),
    _warp("aloha_pot", "aloha_pot/scene.xml", "two ALOHA arms and a pot", "lift_pot7"),
    _arm("panda_arm", "panda_gripper", _numbered("joint{}"), 0, 0.196, 0, -2.618, 0, 2.942, 0.785),
    _arm(
        "sawyer_arm",
        "rethink_gripper",
        _numbered("right_j{}", 0),
        0,
        -1.18,
        0,
        2.18,
        0,
        0.57,
        -1.57,
        excluded=("right_arm_base_link", "right_l0"),
    ),
    _arm(
        "ur5e_arm",
        "robotiq_gripper_140",
        _UR5E,
        -0.47,
        -1.735,
        2.48,
        -2.275,
        -1.59,
        -1.991,
        excluded=("fixed_base_link", "shoulder_link"),
    ),
    _arm("iiwa_arm", "robotiq_gripper_140", _numbered("joint_{}"), 0, 0.65, 0, -1.89, 0, 0.6, 0),
    _arm(
        "jaco_arm", "jaco_three_finger_gripper", _numbered("j2s7s300_joint_{}"), 3.192, 3.68, 0, 1.17, 0.05, 3.76, 3.142
    ),
)
"""All robots of the set `robots`."""


def robot_names() -> list[str]:
    """Names of all robots, in the order of the catalogue."""
    return [robot.name for robot in ROBOTS]
