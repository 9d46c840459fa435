"""Cube maps of hulls: the vertex that a map gives is that of a look at all vertices, for every kind of hull."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path

import mujoco
import numpy as np
import pytest

import simengine
from simengine import Simulation
from simengine.kernels import sources
from simengine.kernels.host_build import build_library, defines
from simengine.model.cubemaps import LOOKS_AT_ALL, CubeMap, cell_packs, cube_map

PACKAGE = Path(simengine.__file__).parent
HEADERS = ("physics/math/spatial.cuh", "physics/math/padded_matrix.cuh", "physics/collision/convex/hull.cuh")
ENTRY = """
struct Model {
  DEVICE_METHOD const real* hull_vert() const { return 0; }
  DEVICE_METHOD const real* geom_extent() const { return 0; }
  DEVICE_METHOD const int* geom_hulladr() const { return 0; }
  DEVICE_METHOD const int* geom_hullnum() const { return 0; }
  DEVICE_METHOD const int* geom_cubeadr() const { return 0; }
  DEVICE_METHOD const int* geom_cubeside() const { return 0; }
  DEVICE_METHOD const int* cube_adr() const { return 0; }
  DEVICE_METHOD const int* cube_vert() const { return 0; }
  DEVICE_METHOD const int* cube_pack() const { return 0; }
  DEVICE_METHOD int ncubepack() const { return 0; }
};
"""
LOOKUP = """
extern "C" void lookup(const real* vert, int nvert, const int* adr, const int* list, int side, const int* pack,
                       const real* dir, int n, int* out, real* places) {
  Hull hull = {vert, nvert, real(0), adr, list, side};
#ifdef MATRIX_VECTORS
  hull.pack = pack;
#endif
  hull.last = -1;
  for (int i = 0; i < n; ++i) out[i] = farthest_point(hull, dir + 3 * i, places + 3 * i);
}
"""


@cache
def library(dtype: str) -> ctypes.CDLL:
    headers = ((PACKAGE / name).read_text() for name in HEADERS)
    source = "\n".join([sources.dialect(), ENTRY, *headers, LOOKUP]).replace("#pragma once\n", "")
    return ctypes.CDLL(str(build_library("test_cube_maps", source, defines(dtype, 1))))


def farthest(
    vert: np.ndarray, cube: CubeMap, directions: np.ndarray, dtype: str, *, in_packs: bool = False
) -> np.ndarray:
    """The vertices that the kernels find for directions (n, 3); without a map of any cells they look at all."""
    points, dirs = (np.ascontiguousarray(x, dtype) for x in (vert, directions))
    adr, listed = (np.ascontiguousarray(x, np.int32) for x in (cube.adr, cube.vert))
    packs = cell_packs(cube.adr, cube.vert, vert[cube.vert])
    out, places = np.full(len(dirs), -1, np.int32), np.full_like(dirs, np.nan)
    at = [ctypes.c_void_p(x.ctypes.data) for x in (points, adr, listed, packs, dirs, out, places)]
    at[3] = at[3] if in_packs else ctypes.c_void_p(None)
    library(dtype).lookup(at[0], len(vert), *at[1:3], cube.side, *at[3:5], len(dirs), *at[5:])
    np.testing.assert_array_equal(places, points[out])
    return out


def ellipsoid(rng: np.random.Generator, number: int, axes: tuple[float, float, float]) -> np.ndarray:
    points = rng.normal(size=(number, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True) * np.array(axes)


def prism(number: int, height: float) -> np.ndarray:
    angle = 2 * np.pi / number * np.arange(number)
    ring = np.stack([0.1 * np.cos(angle), 0.1 * np.sin(angle)], axis=1)
    return np.concatenate([np.column_stack([ring, np.full(number, z)]) for z in (height, -height)])


def plate(number: int) -> np.ndarray:
    """A box with a grid of points on its two large sides, all but the outer ones inside the hull's faces."""
    x, y, z = np.meshgrid(np.linspace(-0.2, 0.2, number), np.linspace(-0.1, 0.1, number), (-0.01, 0.01))
    return np.stack([x.ravel(), y.ravel(), z.ravel()], axis=1)


def twice(points: np.ndarray) -> np.ndarray:
    """The points, all of them twice, in another order."""
    return np.concatenate([points, points[::-1]])


HULLS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "few": lambda rng: ellipsoid(rng, LOOKS_AT_ALL, (0.1, 0.1, 0.1)),
    "some": lambda rng: ellipsoid(rng, LOOKS_AT_ALL + 1, (0.1, 0.08, 0.05)),
    "ball": lambda rng: ellipsoid(rng, 700, (0.1, 0.1, 0.1)),
    "needle": lambda rng: ellipsoid(rng, 300, (1.0, 0.01, 0.02)),
    "leaf": lambda rng: ellipsoid(rng, 300, (0.3, 0.2, 1e-6)),
    "flat": lambda rng: ellipsoid(rng, 200, (0.3, 0.2, 0.0)),
    "speck": lambda rng: ellipsoid(rng, 200, (1e-5, 2e-5, 1e-5)),
    "away from its frame": lambda rng: ellipsoid(rng, 200, (0.1, 0.1, 0.1)) + np.array([3.0, -2.0, 1.0]),
    "prism": lambda rng: prism(150, 0.05),
    "disc": lambda rng: prism(200, 1e-4),
    "plate": lambda rng: plate(12),
    "duplicates": lambda rng: twice(ellipsoid(rng, 150, (0.1, 0.1, 0.2))),
    "plate of duplicates": lambda rng: twice(plate(8)),
    "line": lambda rng: np.outer(np.linspace(-1, 1, 40), (0.2, 0.1, -0.3)),
    "point": lambda rng: np.tile([[0.1, 0.2, 0.3]], (20, 1)),
}


def directions_for(rng: np.random.Generator, vert: np.ndarray) -> np.ndarray:
    """Directions at random, to neighbours of edges of cells, and those in which several vertices are equally far."""
    random = rng.normal(size=(4000, 3))
    grid = rng.integers(-32, 33, size=(3000, 3)) / 32.0
    on_cube = np.where(np.arange(3) == rng.integers(0, 3, size=(3000, 1)), rng.choice([-1.0, 1.0], (3000, 1)), grid)
    nudged = on_cube * (1 + 1e-7 * rng.integers(-3, 4, size=on_cube.shape))
    axes = np.concatenate([np.eye(3), -np.eye(3)])
    tilted = np.repeat(axes, 300, axis=0) + 10.0 ** rng.uniform(-9, -2, (1800, 1)) * rng.normal(size=(1800, 3))
    a, b, c = (vert[rng.integers(0, len(vert), 3000)] for _ in range(3))
    normals = np.cross(b - a, c - a)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    across = np.cross(b - a, rng.normal(size=(3000, 3)))
    found = np.concatenate([random, on_cube, nudged, axes, tilted, normals, -normals, across, vert])
    found = found[np.abs(found).max(axis=1) > 1e-12]
    return found * 10.0 ** rng.uniform(-3, 3, (len(found), 1))


@cache
def mapped(name: str) -> tuple[np.ndarray, CubeMap, np.ndarray]:
    """Vertices of a hull, their cube map, and directions to look in."""
    rng = np.random.default_rng(len(name))
    vert = HULLS[name](rng)[rng.permutation(len(HULLS[name](rng)))]
    vert = vert.astype(np.float32).astype(np.float64)  # as MuJoCo stores them
    return vert, cube_map(vert), directions_for(rng, vert)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(name, dtype, marks=[pytest.mark.slow] * (dtype == "float64" and name not in ("some", "ball")))
        for name in HULLS
        for dtype in ("float32", "float64")
    ],
)
def test_a_map_finds_the_vertex_of_a_look_at_all(name: str, dtype: str) -> None:
    vert, cube, directions = mapped(name)
    assert (cube.side > 0) == (len(vert) > LOOKS_AT_ALL)
    none = CubeMap(0, np.zeros(1, int), np.zeros(0, int))
    everywhere = farthest(vert, none, directions, dtype)
    heights = np.einsum("nk,nk->n", vert[everywhere], directions)
    assert np.all(heights >= (directions @ vert.T).max(axis=1) - 1e-5 * np.abs(vert).max() * np.abs(directions).sum(1))
    for in_packs in (False, True):
        np.testing.assert_array_equal(farthest(vert, cube, directions, dtype, in_packs=in_packs), everywhere)


def test_cells_that_would_not_fit_caches_have_no_packs() -> None:
    vert = ellipsoid(np.random.default_rng(1), 300, (0.1, 0.08, 0.06))
    cube = cube_map(vert)
    cells, entries = len(cube.adr) - 1, len(cube.vert)
    times = -(-(2**18) // cells)
    adr = np.concatenate([[0], *(cube.adr[1:] + turn * entries for turn in range(times))])
    assert len(cell_packs(cube.adr, cube.vert, vert[cube.vert])) >= cells
    assert len(cell_packs(adr, np.tile(cube.vert, times), np.tile(vert[cube.vert], (times, 1)))) == 0


@pytest.mark.parametrize(("number", "most"), [(30, 5.0), (300, 5.0), (3000, 5.0)])
def test_a_look_takes_few_vertices(number: int, most: float) -> None:
    vert = ellipsoid(np.random.default_rng(1), number, (0.1, 0.08, 0.06))
    cube = cube_map(vert)
    assert cube.adr[-1] == len(cube.vert)
    assert len(cube.adr) == 6 * cube.side**2 + 1
    assert np.diff(cube.adr).min() >= 1
    assert np.diff(cube.adr).mean() < most
    assert len(cube.vert) < 50 * number  # and the map is small


def test_contacts_of_large_meshes_are_mujocos() -> None:
    rng = np.random.default_rng(2)
    shapes = {
        "rock": ellipsoid(rng, 500, (0.1, 0.08, 0.06)).round(4),
        "plate": plate(9) * np.array([0.5, 0.8, 2.0]),
        "drum": prism(40, 0.06),
    }
    texts = {name: " ".join(f"{x:.5f}" for x in points.ravel()) for name, points in shapes.items()}
    assets = "".join(f'<mesh name="{name}" vertex="{text}"/>' for name, text in texts.items())
    bodies = "".join(f'<body><freejoint/><geom type="mesh" mesh="{name}"/></body>' for name in (*shapes, *shapes))
    mj = mujoco.MjModel.from_xml_string(
        f'<mujoco><option><flag multiccd="disable"/></option><asset>{assets}</asset>'
        f"<worldbody>{bodies}</worldbody></mujoco>"
    )
    mj.opt.ccd_tolerance, mj.opt.ccd_iterations = 1e-12, 500
    worlds, data = 60, mujoco.MjData(mj)
    qpos = np.zeros((worlds, mj.nbody - 1, 7))
    qpos[:, :, :3] = rng.uniform(-0.13, 0.13, size=(worlds, mj.nbody - 1, 3))
    qpos[:, :, 3:] = rng.normal(size=(worlds, mj.nbody - 1, 4))
    qpos = qpos.reshape(worlds, -1)
    sim = Simulation(mj, num_worlds=worlds, backend="host", dtype="float64")
    sim.set_state(qpos=qpos)
    sim.forward()
    compared = wrong = 0
    for world in range(worlds):
        data.qpos[:] = qpos[world]
        mujoco.mj_forward(mj, data)
        contacts = sim.contacts(world)
        assert contacts.ncon == data.ncon
        compared += data.ncon
        wrong += int((np.abs(np.asarray(contacts.dist) - data.contact.dist) > 1e-6).sum())
    assert compared > 300
    assert wrong <= compared // 100  # of two ways out as short, either may be chosen
