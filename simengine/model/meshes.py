"""Convex hulls of the meshes that can touch something, for the narrowphase.

MuJoCo collides a mesh as its convex hull, whose vertices it lists in `mesh_graph` and whose flat faces in `mesh_poly*`.
Meshes that are only seen do not get here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import mujoco
import numpy as np


class Hull(NamedTuple):
    """The hull of one mesh.

    Attributes:
        vert: (n, 3) vertices in the mesh's frame [m].
        faces: vertices of each flat face, in MuJoCo's order around it.
        normal: (number of faces, 3) outward.
    """

    vert: np.ndarray
    faces: list[np.ndarray]
    normal: np.ndarray


def hull_of(mj: mujoco.MjModel, mesh: int) -> Hull:
    """The hull of a mesh; all of its vertices if MuJoCo keeps no hull."""
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


def hull_table(mj: mujoco.MjModel, geoms: Iterable[int]) -> dict[str, np.ndarray]:
    """The `hull_*` and `face_*` arrays of the model table, with the hulls of these geoms that are meshes."""
    mesh_geoms = [g for g in sorted(set(geoms)) if mj.geom_type[g] == mujoco.mjtGeom.mjGEOM_MESH]
    meshes = sorted({int(mj.geom_dataid[g]) for g in mesh_geoms})
    hulls = [hull_of(mj, mesh) for mesh in meshes]
    sizes = {"vert": [len(h.vert) for h in hulls], "face": [len(h.faces) for h in hulls]}
    starts = {kind: np.cumsum([0, *counts]) for kind, counts in sizes.items()}
    names = [f"geom_{kind}{what}" for kind in ("hull", "face") for what in ("adr", "num")]
    of_geom = {name: np.zeros(mj.ngeom, np.int32) for name in names}
    for g in mesh_geoms:
        i = meshes.index(int(mj.geom_dataid[g]))
        for name, kind in (("hull", "vert"), ("face", "face")):
            of_geom[f"geom_{name}adr"][g] = starts[kind][i]
            of_geom[f"geom_{name}num"][g] = sizes[kind][i]
    faces = [face for h in hulls for face in h.faces]
    return of_geom | {
        "hull_vert": np.concatenate([h.vert for h in hulls]) if hulls else np.zeros((0, 3)),
        "face_adr": np.cumsum([0, *(len(face) for face in faces)]),
        "face_vert": np.concatenate(faces) if faces else np.zeros(0),
        "face_normal": np.concatenate([h.normal for h in hulls]) if hulls else np.zeros((0, 3)),
    }
