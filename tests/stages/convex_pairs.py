"""Pairs of convex shapes in random poses, all in one model. A shape can touch only the other one of its pair."""

from __future__ import annotations

from functools import cache

import mujoco
import numpy as np

from simengine.check.oracle import Oracle

SHAPES = {
    "sphere": 'type="sphere" size="0.1"',
    "capsule": 'type="capsule" size="0.06 0.1"',
    "ellipsoid": 'type="ellipsoid" size="0.1 0.13 0.08"',
    "cylinder": 'type="cylinder" size="0.1 0.12"',
    "box": 'type="box" size="0.1 0.12 0.08"',
    "mesh": 'type="mesh" mesh="rock"',
    "plane": 'type="plane" size="1 1 1"',
}
ROCK = np.concatenate(
    [
        [[0.1 * np.cos(a), 0.09 * np.sin(a), -0.08] for a in (0.1, 0.9, 2.2, 3.3, 4.1, 4.9, 5.6)],
        [[0.08 * np.cos(a), 0.1 * np.sin(a), 0.07] for a in (0.3, 1.9, 3.1, 4.7)],
        [[0.02, 0.03, 0.12]],
    ]
)
"""Corners of a mesh [m] that has faces of many sides and triangles."""

PAIRS = (
    *(("sphere", "ellipsoid"), ("capsule", "ellipsoid"), ("ellipsoid", "ellipsoid"), ("cylinder", "ellipsoid")),
    *(("box", "ellipsoid"), ("cylinder", "capsule"), ("sphere", "mesh"), ("ellipsoid", "mesh"), ("plane", "mesh")),
    *(("box", "cylinder"), ("cylinder", "cylinder"), ("mesh", "capsule"), ("mesh", "cylinder"), ("mesh", "box")),
    ("mesh", "mesh"),
)
_HEIGHT = {"cylinder": 0.12, "box": 0.08, "mesh": 0.08}
"""Distance of the lower flat side from the centre [m]. All but the mesh have an equal upper side."""
_LYING = {"capsule": 0.06, "cylinder": 0.1}
"""Height of the centre of a shape that lies on its side [m]."""


def _pair(number: int, first: str, second: str) -> str:
    alone = f'contype="{1 << number}" conaffinity="{1 << number}"'
    return f"<geom {alone} {SHAPES[first]}/><body><freejoint/><geom {alone} {SHAPES[second]}/></body>"


@cache
def model(margin: float = 0.0) -> mujoco.MjModel:
    """A model with a fixed and a free shape for each pair. MuJoCo's convex collisions iterate until they converge."""
    corners = " ".join(f"{x:.4f}" for x in ROCK.ravel())
    assets = f'<mesh name="rock" vertex="{corners}"/>'
    bodies = "".join(_pair(i, *pair) for i, pair in enumerate(PAIRS))
    option = '<option gravity="0 0 0" ccd_tolerance="1e-12" ccd_iterations="500"/>'
    default = f'<default><geom margin="{margin}"/></default>'
    return mujoco.MjModel.from_xml_string(
        f"<mujoco>{option}{default}<asset>{assets}</asset><worldbody>{bodies}</worldbody></mujoco>"
    )


@cache
def poses(n: int, seed: int = 6) -> np.ndarray:
    """Random qpos (n, nq) with close shapes, exact in float32. Rounding does not decide which contacts exist."""
    oracles = [Oracle(model(margin)) for margin in (0.0, 0.01)]
    decided = [qpos for qpos in drawn(6 * n, seed) if all(oracle.is_decided(qpos) for oracle in oracles)]
    assert len(decided) >= n
    return np.array(decided[:n])


def drawn(n: int, seed: int) -> np.ndarray:
    """Random poses. A third of them are nearly flat if the shapes have flat sides."""
    rng = np.random.default_rng(seed)
    out = np.zeros((n, len(PAIRS), 7))
    out[..., :3] = rng.uniform(-0.2, 0.2, size=(n, len(PAIRS), 3))
    out[..., 3:] = rng.normal(size=(n, len(PAIRS), 4))
    for i, pair in enumerate(PAIRS):
        if {*pair} <= {*_HEIGHT, *_LYING}:
            out[::3, i] = [_flat(rng, *pair) for _ in range(len(out[::3]))]
    return out.reshape(n, -1).astype(np.float32).astype(np.float64)


def _flat(rng: np.random.Generator, first: str, second: str) -> np.ndarray:
    """A pose on or below the first shape's flat side, tilted by up to 0.1 rad, with up to 2 cm penetration."""
    out = np.zeros(7)
    below = first == "mesh" or rng.random() < 0.5
    on_side = second not in _HEIGHT or (second in _LYING and rng.random() < 0.5)
    height = _HEIGHT[first] + (_LYING if on_side else _HEIGHT)[second] - rng.uniform(-0.002, 0.02)
    out[:3] = *rng.uniform(-0.1, 0.1, size=2), -height if below else height
    tilt = rng.uniform(-0.1, 0.1)
    turns = (
        ((0, 0, 1), rng.uniform(0, 6.28)),
        ((0, 1, 0), tilt + np.pi / 2 * on_side + np.pi * (below and not on_side)),
        ((0, 0, 1), rng.uniform(0, 6.28)),
    )
    out[3] = 1.0
    for axis, angle in turns:
        turn = np.zeros(4)
        mujoco.mju_axisAngle2Quat(turn, np.array(axis, float), angle)
        mujoco.mju_mulQuat(out[3:], out[3:].copy(), turn)
    return out
