"""Random articulated robots: a torso with limbs, whose segments are on hinges with a motor each.

A `Robot` is an immutable description of a body. `Robot.random` draws one, `mutated` returns a slightly changed one, and
`mjcf` writes it. All vectors are in the robot's frame in its reference pose: x forward, y left, z up. Bodies are not
rotated in that pose, so their axes are those of the world.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

Vector: TypeAlias = tuple[float, float, float]

_AXES: dict[str, Vector] = {"roll": (1, 0, 0), "pitch": (0, 1, 0), "yaw": (0, 0, 1)}
_TORSOS = ("sphere", "capsule", "box", "ellipsoid")
_MIRROR = np.array([1.0, -1.0, 1.0])
_CLEARANCE = 0.01  # [m] initial distance of the lowest point from the floor
_SIZES = {"length": (0.1, 0.4), "radius": (0.025, 0.06), "gear": (10.0, 60.0), "reach": (20.0, 80.0)}
"""Ranges of a segment's numbers: lengths [m], gear [N m], range of a joint to either side [degrees]."""


@dataclass(frozen=True)
class Segment:
    """A capsule on one or two hinges.

    Attributes:
        direction: unit vector along the capsule in the reference pose.
        length, radius: of the capsule [m].
        hinges: names of the hinges' axes: roll, pitch, yaw.
        reach: range of each joint to either side [degrees].
        gear: torque of each motor at control 1 [N m].
    """

    direction: Vector
    length: float
    radius: float
    hinges: tuple[str, ...]
    reach: float
    gear: float


@dataclass(frozen=True)
class Limb:
    """A chain of segments.

    Attributes:
        place: position on the torso, in units of the torso's half sizes, each in [-1, 1].
        segments: the segments, from the torso outwards.
        mirrored: whether there is a second limb, reflected to the other side (y to -y).
    """

    place: Vector
    segments: tuple[Segment, ...]
    mirrored: bool


@dataclass(frozen=True)
class Robot:
    """The description of a robot.

    Attributes:
        torso: geom type of the torso: sphere, capsule, box or ellipsoid.
        half: half sizes of the torso [m]; a sphere uses the first; a capsule lies along x and has the second as radius.
        limbs: the limbs, at least one.
    """

    torso: str
    half: Vector
    limbs: tuple[Limb, ...]

    @staticmethod
    def random(rng: np.random.Generator, limbs: int | None = None, segments: int | None = None) -> Robot:
        """Draw a robot.

        Args:
            rng: random number generator.
            limbs: number of limbs, where a mirrored pair counts as two; None draws 2 to 6.
            segments: number of segments of each limb; None draws 1 to 3.

        Raises:
            ValueError: fewer than one limb or segment.
        """
        wanted = int(rng.integers(2, 7)) if limbs is None else limbs
        number = int(rng.integers(1, 4)) if segments is None else segments
        if wanted < 1 or number < 1:
            raise ValueError(f"a robot has at least one limb and one segment, got {wanted} and {number}")
        torso = str(rng.choice(_TORSOS))
        half = tuple(_round(rng.uniform(low, high)) for low, high in ((0.12, 0.3), (0.08, 0.18), (0.06, 0.14)))
        grown: list[Limb] = []
        while wanted:
            grown.append(_limb(rng, number, mirrored=wanted > 1 and rng.random() < 0.8))
            wanted -= 1 + grown[-1].mirrored
        return Robot(torso, (half[0], half[1], half[2]), tuple(grown))

    def mutated(self, rng: np.random.Generator, strength: float = 0.15) -> Robot:
        """A robot with other proportions and, sometimes, one limb more or less.

        Args:
            rng: random number generator.
            strength: standard deviation of the relative change of each number.
        """
        limbs = [_varied_limb(rng, limb, strength) for limb in self.limbs]
        draw = rng.random()
        if draw < 0.1 and len(limbs) > 1:
            limbs.pop(int(rng.integers(len(limbs))))
        elif draw > 0.9 and len(limbs) < 4:
            limbs.append(_limb(rng, len(limbs[0].segments), mirrored=True))
        half = tuple(_round(np.clip(x * np.exp(strength * rng.normal()), 0.05, 0.4)) for x in self.half)
        torso = str(rng.choice(_TORSOS)) if rng.random() < 0.05 else self.torso
        return Robot(torso, (half[0], half[1], half[2]), tuple(limbs))

    @property
    def num_actuators(self) -> int:
        """Number of motors, one per hinge."""
        return sum((1 + limb.mirrored) * sum(len(s.hinges) for s in limb.segments) for limb in self.limbs)

    def mjcf(self, name: str = "robot", *, timestep: float = 0.005, self_collisions: bool = False) -> str:
        """MJCF of the robot, just above a floor.

        Args:
            name: name of the model.
            timestep: timestep of the simulation [s].
            self_collisions: whether parts of the robot collide with each other, not only with the floor.
        """
        parts = list(self._written())
        bodies, motors = "".join(body for body, _ in parts), "".join(motor for _, motor in parts)
        height = _round(_CLEARANCE - self._lowest())
        return f"""<mujoco model="{name}">
  <compiler angle="degree" autolimits="true"/>
  <option timestep="{timestep:g}"/>
  <default>
    <joint type="hinge" armature="0.01" damping="0.5"/>
    <geom density="800" friction="1 0.01 0.001" contype="1" conaffinity="{int(self_collisions)}"/>
    <motor ctrlrange="-1 1"/>
  </default>
  <asset>
    <texture name="tiles" type="2d" builtin="checker" rgb1=".56 .58 .56" rgb2=".64 .66 .64" width="64" height="64"/>
    <material name="tiles" texture="tiles" texrepeat="1 1" texuniform="true"/>
  </asset>
  <worldbody>
    <light pos="0 0 4" dir="0 0 -1" directional="true"/>
    <geom name="floor" type="plane" size="40 40 1" conaffinity="1" material="tiles"/>
    <body name="torso" pos="0 0 {height:g}">
      <freejoint name="root"/>
      <geom name="torso" {self._torso_shape()}/>
{bodies}    </body>
  </worldbody>
  <actuator>
{motors}  </actuator>
</mujoco>
"""

    def _torso_shape(self) -> str:
        x, y, z = self.half
        if self.torso == "sphere":
            return f'type="sphere" size="{x:g}"'
        if self.torso == "capsule":
            return f'type="capsule" fromto="{-x:g} 0 0 {x:g} 0 0" size="{y:g}"'
        return f'type="{self.torso}" size="{x:g} {y:g} {z:g}"'

    def _sides(self) -> Iterator[tuple[str, Limb, np.ndarray]]:
        """Every limb and mirror image, with its name and the factors on its vectors."""
        for index, limb in enumerate(self.limbs):
            yield f"limb{index}", limb, np.ones(3)
            if limb.mirrored:
                yield f"limb{index}_mirror", limb, _MIRROR

    def _start(self, limb: Limb) -> np.ndarray:
        """Position of a limb's first joint, inside the torso, in the torso's frame [m]."""
        extent = {"sphere": (self.half[0],) * 3, "capsule": (self.half[0], self.half[1], self.half[1])}
        return 0.7 * np.array(limb.place) * np.array(extent.get(self.torso, self.half))

    def _lowest(self) -> float:
        """Height of the lowest point in the reference pose above the torso's centre [m]."""
        x, y, z = self.half
        lowest = [-{"sphere": x, "capsule": y}.get(self.torso, z)]
        for limb in self.limbs:
            at = self._start(limb)[2]
            for segment in limb.segments:
                at += segment.length * segment.direction[2]
                lowest.append(at - segment.radius)
        return min(lowest)

    def _written(self) -> Iterator[tuple[str, str]]:
        """MJCF of the body and of the motors of each limb."""
        for name, limb, mirror in self._sides():
            opened, motors = "", ""
            at = mirror * self._start(limb)
            for k, segment in enumerate(limb.segments):
                end = segment.length * mirror * np.array(segment.direction)
                opened += f'      <body name="{name}_{k}" pos="{_words(at)}">\n'
                for hinge in segment.hinges:
                    # reflection reverses an axis, so that both sides move symmetrically under the same control
                    axis = -mirror * np.array(_AXES[hinge]) if mirror[1] < 0 else np.array(_AXES[hinge])
                    joint = f"{name}_{k}_{hinge}"
                    span = f"{-segment.reach:g} {segment.reach:g}"
                    opened += f'      <joint name="{joint}" axis="{_words(axis)}" range="{span}"/>\n'
                    motors += f'    <motor name="{joint}" joint="{joint}" gear="{segment.gear:g}"/>\n'
                shape = f'fromto="0 0 0 {_words(end)}" size="{segment.radius:g}"'
                opened += f'      <geom name="{name}_{k}" type="capsule" {shape}/>\n'
                at = end
            yield opened + "      " + "</body>" * len(limb.segments) + "\n", motors


def random_robot(seed: int, **options: int | None) -> str:
    """A random articulated robot as MJCF. The same seed gives the same robot on every machine.

    Args:
        seed: seed of the random numbers.
        options: `limbs` and `segments`; see `Robot.random`.
    """
    return Robot.random(np.random.default_rng(seed), **options).mjcf(f"robot_{seed}")


def _round(x: float) -> float:
    return round(float(x), 4)


def _words(vector: np.ndarray) -> str:
    return " ".join(f"{round(float(x), 4) + 0.0:g}" for x in vector)


def _unit(vector: np.ndarray) -> Vector:
    x, y, z = (vector / np.linalg.norm(vector)).tolist()
    return (_round(x), _round(y), _round(z))


def _limb(rng: np.random.Generator, segments: int, mirrored: bool) -> Limb:
    """A limb that goes outwards and then down; if it is not mirrored, it lies in the plane of symmetry."""
    side = rng.uniform(0.3, 1.0) if mirrored else 0.0
    place = (_round(rng.uniform(-1, 1)), _round(side), _round(rng.uniform(-0.5, 0.3)))
    chain = []
    for k in range(segments):
        outwards = np.array([rng.uniform(-0.6, 0.6), side * rng.uniform(0.2, 1.0), 0.0])
        down = np.array([0.0, 0.0, -rng.uniform(0.4, 1.2) * (k + 1)])
        hinges = ("pitch", "roll") if k == 0 and rng.random() < 0.6 else ("pitch",)
        length, radius, gear, reach = (_round(rng.uniform(low, high)) for low, high in _SIZES.values())
        chain.append(Segment(_unit(outwards + down), length, radius, hinges, reach, gear))
    return Limb(place, tuple(chain), mirrored)


def _varied_limb(rng: np.random.Generator, limb: Limb, strength: float) -> Limb:
    segments = []
    for segment in limb.segments:
        length, radius, gear, reach = (
            _round(np.clip(getattr(segment, name) * np.exp(strength * rng.normal()), low, high))
            for name, (low, high) in _SIZES.items()
        )
        noise = strength * rng.normal(size=3) * ([1, 1, 1] if limb.mirrored else [1, 0, 1])
        direction = _unit(np.array(segment.direction) + noise)
        segments.append(Segment(direction, length, radius, segment.hinges, reach, gear))
    return replace(limb, segments=tuple(segments))
