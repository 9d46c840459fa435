"""Boxes and meshes that lie flat on each other, all in one model. A shape can touch only the other one of its pair."""

from __future__ import annotations

from functools import cache
from itertools import product

import mujoco
import numpy as np

HALF = np.array([0.1, 0.12, 0.08])
"""Half sides of the box, and half the height of every mesh [m]."""

PAIRS = (
    ("box", "prism"),
    ("prism", "other"),
    ("bevel", "bevel"),
    ("box", "beads"),
    ("beads", "prism"),
    ("box", "cube"),
)


def _prism(seed: int) -> np.ndarray:
    """Corners of a prism on an irregular base (n, 3) [m]."""
    rng = np.random.default_rng(seed)
    angle = np.sort(rng.uniform(0, 2 * np.pi, 8))
    base = np.column_stack([0.12 * np.cos(angle), 0.09 * np.sin(angle)])
    return np.concatenate([np.column_stack([base, np.full(len(base), z)]) for z in (-HALF[2], HALF[2])])


def _cube() -> np.ndarray:
    return HALF * np.array(list(product((-1.0, 1.0), repeat=3)))


def _bevel() -> np.ndarray:
    """A box with bevelled edges."""
    return np.array([corner - 0.01 * np.sign(corner) * (np.arange(3) == k) for corner in _cube() for k in range(3)])


def _beads() -> np.ndarray:
    """A box with another corner on each edge, a hundredth of a micrometre outside, as meshes from CAD have them."""
    ends = ((a, b) for a in _cube() for b in _cube() if np.count_nonzero(a != b) == 1 and a.sum() < b.sum())
    return np.concatenate([_cube(), [(a + b) * (0.5 + 5e-8) for a, b in ends]])


@cache
def model() -> mujoco.MjModel:
    """A model with a fixed and a free shape for each pair, without margins."""
    meshes = {"prism": _prism(0), "other": _prism(1), "bevel": _bevel(), "beads": _beads(), "cube": _cube()}
    text = {name: " ".join(f"{x:.9g}" for x in corners.ravel()) for name, corners in meshes.items()}
    assets = "".join(f'<mesh name="{name}" vertex="{vertex}"/>' for name, vertex in text.items())
    size = " ".join(map(str, HALF))
    geom = {name: f'type="mesh" mesh="{name}"' for name in meshes} | {"box": f'type="box" size="{size}"'}
    bodies = "".join(
        f'<geom contype="{1 << i}" conaffinity="{1 << i}" {geom[first]}/><body><freejoint/>'
        f'<geom contype="{1 << i}" conaffinity="{1 << i}" {geom[second]} mass="1"/></body>'
        for i, (first, second) in enumerate(PAIRS)
    )
    return mujoco.MjModel.from_xml_string(
        '<mujoco><option gravity="0 0 0" ccd_tolerance="1e-12" ccd_iterations="500"/>'
        f"<asset>{assets}</asset><worldbody>{bodies}</worldbody></mujoco>"
    )


@cache
def poses(number: int, tilt: float, seed: int = 0) -> np.ndarray:
    """States (number, nq), exact in float32: sunk by 10 micrometres to a centimetre, and tilted by up to `tilt`."""
    rng, out = np.random.default_rng(seed), np.zeros((number, len(PAIRS), 7))
    for pose in out.reshape(-1, 7):
        pose[:2] = rng.uniform(-0.15, 0.15, 2)
        pose[2] = 2 * HALF[2] - 10 ** rng.uniform(-5, -2)
        mujoco.mju_euler2Quat(pose[3:], np.array([*rng.uniform(-tilt, tilt, 2), rng.uniform(-3, 3)]), "XYZ")
    return out.reshape(number, -1).astype(np.float32).astype(np.float64)


def touching(depth: np.ndarray, turn: float) -> np.ndarray:
    """States (n, nq) in which all pairs lie on each other, sunk by `depth` (n,) [m] up to the rounding of float64."""
    out = np.zeros((len(depth), len(PAIRS), 7))
    corner = float(np.float32(HALF[2]))  # vertices of meshes have single precision, boxes double
    half = [[HALF[2] if name == "box" else corner for name in pair] for pair in PAIRS]
    out[..., 2] = np.sum(half, axis=1)[None] - depth[:, None]
    out[..., 3], out[..., 6] = np.cos(turn / 2), np.sin(turn / 2)
    return out.reshape(len(depth), -1)
