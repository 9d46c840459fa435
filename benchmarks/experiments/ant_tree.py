"""A kinematic tree of the ant's shape as model tables, and random fields for many worlds of it.

14 bodies with the world (torso with a free joint, four legs of three bodies, eight hinges), numbered level by level,
so that a level and a body's children are both ranges of ids.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NBODY, NQ, NV, NLEVEL = 14, 15, 14, 5
LEVELS = (0, 1, 2, 6, 10, 14)
"""First body of each level, and the end: world, torso, legs, thighs, shins."""


@dataclass(frozen=True)
class Tables:
    """Model tables: one blob per dtype, and the macros that name the offsets in them.

    Attributes:
        integers: int32, shape (n,).
        floats: float32, shape (m,).
        defines: NVRTC options ``-DNAME=value``.
    """

    integers: np.ndarray
    floats: np.ndarray
    defines: tuple[str, ...]


def _integer_columns() -> dict[str, np.ndarray]:
    parent = np.array([0, 0, *[1] * 4, *range(2, 6), *range(6, 10)])
    joint = np.array([0, 1, *[0] * 4, *[2] * 8])  # 0 none, 1 free, 2 hinge
    qadr = np.array([-1, 0, *[-1] * 4, *range(7, 15)])
    child = np.array([1, 2, *range(6, 10), *range(10, 14), *[0] * 4])
    nchild = np.array([1, 4, *[1] * 8, *[0] * 4])
    dof_body = np.array([1] * 6 + list(range(6, 14)))
    dof_parent = np.array([-1, *range(5), *[5] * 4, *range(6, 10)])
    return {"PARENT": parent, "JOINT": joint, "QADR": qadr, "CHILD": child, "NCHILD": nchild,
            "DOFBODY": dof_body, "DOFPARENT": dof_parent, "LEVEL": np.array(LEVELS)}  # fmt: skip


def _float_columns(rng: np.random.Generator) -> dict[str, np.ndarray]:
    pos = rng.uniform(-0.3, 0.3, (NBODY, 3))  # m, in the parent's frame
    quat = rng.normal(size=(NBODY, 4))
    axis = rng.normal(size=(NBODY, 3))
    mass = rng.uniform(0.1, 1.0, NBODY)  # kg
    inertia = rng.uniform(0.02, 0.035, (NBODY, 3))  # kg m^2, principal
    unit = [a / np.linalg.norm(a, axis=1, keepdims=True) for a in (quat, axis)]
    return {"POS": pos, "QUAT": unit[0], "AXIS": unit[1], "MASS": mass, "INERTIA": inertia}


def _pack(columns: dict[str, np.ndarray], prefix: str, dtype: type) -> tuple[np.ndarray, list[str]]:
    defines, at = [], 0
    for name, column in columns.items():
        defines.append(f"-D{prefix}_{name}={at}")
        at += column.size
    return np.concatenate([c.ravel() for c in columns.values()]).astype(dtype), defines


def tables(seed: int = 0) -> Tables:
    """The tree's tables with random lengths, axes and inertias."""
    integers, integer_defines = _pack(_integer_columns(), "I", np.int32)
    floats, float_defines = _pack(_float_columns(np.random.default_rng(seed)), "F", np.float32)
    sizes = [f"-DNBODY={NBODY}", f"-DNQ={NQ}", f"-DNV={NV}", f"-DNLEVEL={NLEVEL}"]
    return Tables(integers, floats, (*sizes, *integer_defines, *float_defines))


def random_qpos(num_worlds: int, seed: int = 1) -> np.ndarray:
    """Random joint positions [m, rad], float32, shape (num_worlds, 15); the torso's quaternion is not normalised."""
    qpos = np.random.default_rng(seed).uniform(-0.8, 0.8, (num_worlds, NQ))
    qpos[:, 3] += 2.0  # keeps the quaternion away from zero
    return qpos.astype(np.float32)
