"""Contacts of boxes and meshes that lie flat on each other, against MuJoCo: how many, and the area that they span."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simengine.model import ModelTable, load_table
from simengine.physics.collision.narrowphase_jax import narrowphase
from simengine.physics.kinematics.kinematics_jax import kinematics
from tests.helpers.oracle import quick_jit
from tests.stages.contacts import Found, by_host, by_mujoco
from tests.stages.lying_pairs import PAIRS, model, poses, touching

STATES = 120
TILTS = (0.0, 1e-4, 1e-2)
LESS = 1e-3
"""Share of the area by which four contacts may span less than MuJoCo's."""

APART = 1e-5
"""Least distance of two contacts of a pair that spans an area [m]."""

EXACT = [k for k, pair in enumerate(PAIRS) if "beads" not in pair]
"""Pairs whose sides are flat to the last bit."""

Finder = Callable[[np.ndarray], list[Found]]


def on_host(dtype: str) -> Finder:
    return lambda qpos: by_host(model(), qpos, dtype)


@cache
def in_jax(dtype: str) -> Finder:
    table = load_table(model())
    function = quick_jit(jax.vmap(lambda q: _contacts(table, q)))
    geoms = np.column_stack((table.cand_geom1, table.cand_geom2))[table.slot_cand]

    def find(qpos: np.ndarray) -> list[Found]:
        padded = np.resize(qpos, (STATES, qpos.shape[1]))  # so that one compiled function serves all
        found = (np.asarray(v)[: len(qpos)] for v in function(jnp.asarray(padded, dtype)))
        return [Found(geoms[a], d[a], p[a], f[a]) for d, p, f, a in zip(*found, strict=True)]

    return find


def _contacts(table: ModelTable, qpos: jax.Array) -> tuple[jax.Array, ...]:
    *_, geom_xpos, geom_xmat = kinematics(table, qpos, jnp.zeros((0, 3), qpos.dtype), jnp.zeros((0, 4), qpos.dtype))
    return narrowphase(table, geom_xpos, geom_xmat)


FINDERS = [
    *(pytest.param(on_host(dtype), id=f"host-{dtype}") for dtype in ("float64", "float32")),
    pytest.param(lambda qpos: in_jax("float64")(qpos), id="jax-float64", marks=pytest.mark.slow),
    pytest.param(lambda qpos: in_jax("float32")(qpos), id="jax-float32", marks=pytest.mark.slow),
]


def of_pair(found: Found, number: int) -> np.ndarray:
    """Positions (n, 3) [m] of the contacts of a pair."""
    return np.asarray(found.pos)[found.geoms.min(axis=1) == number]


def area(pos: np.ndarray) -> float:
    """The largest area of the quadrilaterals of four points, or of the triangle of three, from above [m2]."""
    if len(pos) < 3:
        return 0.0
    a, b, c, d = (pos[k % len(pos), :2] for k in range(4))
    diagonals = ((c - a, d - b), (b - a, d - c), (d - a, c - b))
    return float(max(abs(u[0] * v[1] - u[1] * v[0]) for u, v in diagonals)) / 2


def least_distance(pos: np.ndarray) -> float:
    between = np.linalg.norm(pos[:, None] - pos[None], axis=2)
    return float(between[~np.eye(len(pos), dtype=bool)].min())


@pytest.mark.parametrize("tilt", TILTS)
@pytest.mark.parametrize("find", FINDERS)
def test_contacts_span_as_much_as_mujocos(find: Finder, tilt: float) -> None:
    qpos = poses(STATES, tilt)
    compared = np.zeros(len(PAIRS), dtype=int)
    for state, (ours, theirs) in enumerate(zip(find(qpos), by_mujoco(model(), qpos), strict=True)):
        for k, pair in enumerate(PAIRS):
            mine, wanted = of_pair(ours, k), of_pair(theirs, k)
            if "beads" in pair and (len(wanted) == 1 or mine.dtype == np.float32):
                continue  # MuJoCo takes three corners on an edge for a face, and float32 two sides for one
            assert len(mine) == len(wanted), (state, pair)
            if len(mine) < 4:
                continue
            assert area(mine) >= (1 - LESS) * area(wanted), (state, pair)
            assert least_distance(mine) > APART or least_distance(wanted) < APART, (state, pair)
            compared[k] += 1
    assert compared[EXACT].min() > STATES / 3, compared


@pytest.mark.parametrize("turn", [0.0, 0.3])
@pytest.mark.parametrize("find", FINDERS)
def test_what_only_touches_has_no_contact(find: Finder, turn: float) -> None:
    """Neither at zero distance nor where rounding makes it less, so that contacts do not come and go at rest."""
    qpos = touching(np.array([0.0, 1e-16, -1e-16, -1e-12]), turn)
    for ours, theirs in zip(find(qpos), by_mujoco(model(), qpos), strict=True):
        for k in EXACT:
            assert len(of_pair(theirs, k)) == len(of_pair(ours, k)) == 0, PAIRS[k]


@pytest.mark.parametrize("turn", [0.0, 0.3])
@pytest.mark.parametrize(("dtype", "least"), [("float64", 1e-12), ("float32", 3e-7)])
def test_what_overlaps_by_more_than_rounding_has_contacts(dtype: str, least: float, turn: float) -> None:
    qpos = touching(least * np.array([1.0, 3.0, 100.0]), turn)
    for found in by_host(model(), qpos, dtype):
        assert all(len(of_pair(found, k)) > 2 for k in EXACT)


def test_corners_on_a_line_are_an_edge() -> None:
    """In single precision three corners on an edge touch, and the faces beside the edge lie on the other shape."""
    qpos, pairs, several = poses(STATES, 1e-4), [k for k, pair in enumerate(PAIRS) if "beads" in pair], 0
    for ours, theirs in zip(by_host(model(), qpos, "float32"), by_mujoco(model(), qpos), strict=True):
        for k in pairs:
            assert len(of_pair(ours, k)) >= min(3, len(of_pair(theirs, k)))
            several += len(of_pair(ours, k)) > 2
    assert several > STATES
