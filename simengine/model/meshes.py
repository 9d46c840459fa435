"""Table fields of convex hulls: of meshes that can touch something, and of boxes and cylinders.

MuJoCo collides a mesh as its convex hull, whose vertices are in `mesh_graph` and whose flat faces are in `mesh_poly*`.
Meshes that cannot collide are left out. Boxes and cylinders need hulls where they lie flat on something: a unit box and
a pair of caps (polygons of radius one) follow the hulls of meshes, and are scaled by the geoms' sizes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import mujoco
import numpy as np

from simengine.model.cubemaps import cell_packs, cube_map
from simengine.model.spans import CORNERS, face_spans

CAP_SIDES = 16
_BOX, _CYLINDER = int(mujoco.mjtGeom.mjGEOM_BOX), int(mujoco.mjtGeom.mjGEOM_CYLINDER)
_MESH = int(mujoco.mjtGeom.mjGEOM_MESH)
_BOX_FACES = (  # corners by their signs as bits: x, y, z; MuJoCo's order, on which that of the contacts depends
    *((5, 1, 3, 7), (0, 4, 6, 2), (6, 7, 3, 2)),
    *((0, 1, 5, 4), (4, 5, 7, 6), (1, 0, 2, 3)),
)


class Hull(NamedTuple):
    """The hull of one mesh, or a box or pair of caps in the same form.

    Attributes:
        vert: (n, 3) vertices in the mesh's frame [m].
        faces: vertices of each flat face, in MuJoCo's order around it.
        normal: (number of faces, 3) outward.
        is_box: whether it is the unit box.
    """

    vert: np.ndarray
    faces: list[np.ndarray]
    normal: np.ndarray
    is_box: bool = False


def hull_of(mj: mujoco.MjModel, mesh: int) -> Hull:
    """The hull of a mesh; all vertices of the mesh if MuJoCo stores no hull."""
    first, count = int(mj.mesh_vertadr[mesh]), int(mj.mesh_vertnum[mesh])
    vert = mj.mesh_vert[first : first + count].astype(np.float64)
    used = np.arange(count)
    graph = int(mj.mesh_graphadr[mesh])
    if graph >= 0:
        number = int(mj.mesh_graph[graph])
        used = mj.mesh_graph[graph + 2 + number : graph + 2 + 2 * number]
    place = np.full(count, -1)
    place[used] = np.arange(len(used))
    polygons = range(int(mj.mesh_polyadr[mesh]), int(mj.mesh_polyadr[mesh]) + int(mj.mesh_polynum[mesh]))
    faces = [place[mj.mesh_polyvert[mj.mesh_polyvertadr[p] :][: mj.mesh_polyvertnum[p]]] for p in polygons]
    return Hull(vert[used], faces, np.array([mj.mesh_polynormal[p] for p in polygons]).reshape(-1, 3))


def unit_box() -> Hull:
    """The box with half sides of one."""
    vert = np.array([[1.0 if code >> axis & 1 else -1.0 for axis in range(3)] for code in range(8)])
    normal = np.repeat(np.eye(3), 2, axis=0) * np.array([[1.0], [-1.0]] * 3)
    return Hull(vert, [np.array(face) for face in _BOX_FACES], normal, True)


def unit_caps() -> Hull:
    """Top and bottom of the cylinder with radius and half length one, as polygons with a corner on the x axis."""
    angle = 2 * np.pi / CAP_SIDES * np.arange(CAP_SIDES)
    around = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    vert = np.concatenate([np.column_stack([around, np.full(CAP_SIDES, side)]) for side in (1.0, -1.0)])
    top = np.roll(np.arange(CAP_SIDES), -1)
    return Hull(vert, [top, 2 * CAP_SIDES - 1 - np.arange(CAP_SIDES)], np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]))


def most_corners(mj: mujoco.MjModel, geom: int) -> int:
    """Most corners of a face on which the geom can lie."""
    if mj.geom_type[geom] != _MESH:
        return {_BOX: 4, _CYLINDER: CAP_SIDES}.get(int(mj.geom_type[geom]), 0)
    mesh = int(mj.geom_dataid[geom])
    polygons = slice(mj.mesh_polyadr[mesh], mj.mesh_polyadr[mesh] + mj.mesh_polynum[mesh])
    return int(mj.mesh_polyvertnum[polygons].max(initial=0))


def hull_table(
    mj: mujoco.MjModel, geoms: Iterable[int], flat: Iterable[int], on_planes: Iterable[int]
) -> dict[str, np.ndarray]:
    """The `hull_*`, `face_*`, `vert_*` and `cube_*` arrays of the model table.

    They hold the hulls of those `geoms` that are meshes, and of the boxes and cylinders among the `flat` geoms, which
    can lie flat on others. Faces of the geoms `on_planes` have spans.
    """
    mesh_geoms = [g for g in sorted(set(geoms)) if mj.geom_type[g] == _MESH]
    meshes = sorted({int(mj.geom_dataid[g]) for g in mesh_geoms})
    solid = {_BOX, _CYLINDER} & {int(mj.geom_type[g]) for g in flat}
    hulls = [hull_of(mj, mesh) for mesh in meshes] + ([unit_box(), unit_caps()] if solid else [])
    sizes = {"vert": [len(h.vert) for h in hulls], "face": [len(h.faces) for h in hulls]}
    starts = {kind: np.cumsum([0, *counts]) for kind, counts in sizes.items()}
    maps = [cube_map(hull.vert) for hull in hulls[: len(meshes)]]
    cells = np.cumsum([0, *(len(one.adr) - 1 for one in maps)])
    names = [f"geom_{kind}{what}" for kind in ("hull", "face") for what in ("adr", "num")]
    of_geom = {
        name: np.zeros(mj.ngeom, np.int32) for name in (*names, "geom_solidadr", "geom_cubeadr", "geom_cubeside")
    }
    of_geom["geom_extent"] = np.zeros(mj.ngeom)
    for place, solid_type in enumerate((_BOX, _CYLINDER) if solid else (), start=len(meshes)):
        of_geom["geom_solidadr"][mj.geom_type == solid_type] = starts["vert"][place]
    for g in mesh_geoms:
        i = meshes.index(int(mj.geom_dataid[g]))
        for name, kind in (("hull", "vert"), ("face", "face")):
            of_geom[f"geom_{name}adr"][g] = starts[kind][i]
            of_geom[f"geom_{name}num"][g] = sizes[kind][i]
        of_geom["geom_solidadr"][g] = starts["vert"][i]
        of_geom["geom_cubeadr"][g], of_geom["geom_cubeside"][g] = cells[i], maps[i].side
        of_geom["geom_extent"][g] = np.sqrt((hulls[i].vert ** 2).sum(axis=1).max())
    touching = {meshes.index(int(mj.geom_dataid[g])) for g in on_planes if mj.geom_type[g] == _MESH}
    spans = [
        face_spans(hull.vert, face) if i in touching else np.zeros((len(face), CORNERS))
        for i, hull in enumerate(hulls)
        for face in hull.faces
    ]
    cube_adr = np.cumsum([0, *np.concatenate([np.zeros(0, int), *(np.diff(one.adr) for one in maps)])])
    cube_vert = np.concatenate([np.zeros(0, int), *(one.vert for one in maps)])
    points = np.concatenate([np.zeros((0, 3)), *(hull.vert[one.vert] for hull, one in zip(hulls, maps, strict=False))])
    return {
        **of_geom,
        **_faces(hulls),
        "face_span": np.concatenate([np.zeros((0, CORNERS)), *spans]),
        "cube_adr": cube_adr,
        "cube_vert": cube_vert,
        "cube_pack": cell_packs(cube_adr, cube_vert, points),
    }


def _faces(hulls: list[Hull]) -> dict[str, np.ndarray]:
    """Vertices and faces of hulls; the faces around each vertex, and the other ends of the edges at it. For each of
    these faces, that is the edge before the vertex; for a box, the edges along x, y and z."""
    number, around, ends, first = [np.zeros(0, int)], [np.zeros(0, int)], [np.zeros(0, int)], 0
    for hull in hulls:
        corner = np.concatenate([np.zeros(0, int), *hull.faces])
        before = np.concatenate([np.zeros(0, int), *(np.roll(face, 1) for face in hull.faces)])
        order = np.argsort(corner, kind="stable")
        owner = np.repeat(np.arange(len(hull.faces)), [len(face) for face in hull.faces])
        around.append(first + owner[order])
        ends.append((np.arange(8)[:, None] ^ np.array([1, 2, 4])).ravel() if hull.is_box else before[order])
        number.append(np.bincount(corner, minlength=len(hull.vert)))
        first += len(hull.faces)
    faces = [face for hull in hulls for face in hull.faces]
    return {
        "hull_vert": np.concatenate([np.zeros((0, 3)), *(h.vert for h in hulls)]),
        "face_adr": np.cumsum([0, *(len(face) for face in faces)]),
        "face_vert": np.concatenate([np.zeros(0), *faces]),
        "face_normal": np.concatenate([np.zeros((0, 3)), *(h.normal for h in hulls)]),
        "vert_adr": np.cumsum([0, *np.concatenate(number)]),
        "vert_face": np.concatenate(around),
        "vert_edge": np.concatenate(ends),
    }
