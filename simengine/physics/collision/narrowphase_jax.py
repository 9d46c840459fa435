"""Contacts of every candidate pair in JAX, for one world.

Each pair type has its own file. All pairs of one type are computed together, and their contacts go into their slots.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.collision.convex.solid_table_jax import solids_of
from simengine.physics.collision.narrowphase import NARROWPHASE
from simengine.physics.collision.pairs.convex_jax import shapes_of
from simengine.physics.collision.pairs.hfield_jax import Terrain
from simengine.physics.collision.pairs.plane_mesh_jax import Faces
from simengine.physics.math.vector_jax import const
from simengine.physics.stage import Stage

Contacts = tuple[jax.Array, jax.Array, jax.Array]


def hull_vertices(m: Any, geoms: np.ndarray) -> np.ndarray:
    """(n, k, 3) hull vertices of mesh geoms [m], padded with the first vertex; zero for other geoms."""
    number = np.asarray(m.geom_hullnum)[geoms]
    out = np.zeros((len(geoms), max(1, number.max()), 3))
    for row, geom, count in zip(out, geoms, number, strict=True):
        own = np.asarray(m.hull_vert)[m.geom_hulladr[geom] :][:count]
        row[:] = np.resize(own, row.shape) if count else 0.0
        row[count:] = row[0]
    return out


def hull_faces(m: Any, geoms: np.ndarray) -> Faces:
    """The flat faces of mesh geoms, padded with faces that have no corners."""
    number = np.asarray(m.geom_facenum)[geoms]
    size = np.diff(m.face_adr)
    corner = np.zeros((len(geoms), number.max(), max(3, size.max())), np.int32)
    count, normal = np.zeros(corner.shape[:2], np.int32), np.zeros((*corner.shape[:2], 3))
    first = np.zeros_like(count)
    for i, geom in enumerate(geoms):
        for k, face in enumerate(range(m.geom_faceadr[geom], m.geom_faceadr[geom] + number[i])):
            count[i, k], normal[i, k], first[i, k] = size[face], m.face_normal[face], m.face_adr[face]
            corner[i, k, : size[face]] = m.face_vert[m.face_adr[face] :][: size[face]]
    return Faces(corner, count, normal, first, np.asarray(m.face_span))


class GeomPairs(NamedTuple):
    """Pairs of geoms of one type.

    Attributes:
        geom1, geom2: (n,) their numbers, the lower type first.
        reach: (n,) distance from which there is a contact [m].
        slots: (n,) the most contacts.
    """

    geom1: np.ndarray
    geom2: np.ndarray
    reach: np.ndarray
    slots: np.ndarray


def fields_under(m: Any, pairs: GeomPairs) -> Terrain:
    """The height fields of pairs."""
    field, slots = np.asarray(m.geom_hfieldid)[pairs.geom1], pairs.slots
    each = zip(pairs.geom1.tolist(), pairs.geom2.tolist(), pairs.reach.tolist(), strict=True)
    cells = [m.cells_under(*one)[::-1] for one in each]
    count = np.stack([m.hfield_ncol, m.hfield_nrow], axis=1)[field]
    return Terrain(m.hfield_data, m.hfield_adr[field], count, m.hfield_size[field], np.array(cells), slots)


def pair_contacts(m: Any, stage: Stage, pairs: GeomPairs, geom_xpos: jax.Array, geom_xmat: jax.Array) -> Contacts:
    """Contacts of pairs, all of the stage's type, in the slots of their pairs.

    Returns: dist (n, slots), pos (n, slots, 3), frame (n, slots, 9). For convex pairs and for height fields, which
        differ in their number of slots, the first two axes are flattened into one.
    """
    g1, g2 = pairs.geom1, pairs.geom2
    size1, size2 = const(m.geom_size[g1], geom_xpos), const(m.geom_size[g2], geom_xpos)
    pose1, pose2 = (geom_xpos[g1], geom_xmat[g1]), (geom_xpos[g2], geom_xmat[g2])
    if stage.name == "plane_mesh":
        return stage.load_jax()(*pose1, *pose2, hull_vertices(m, g2), hull_faces(m, g2))
    if stage.name not in ("convex", "hfield"):
        return stage.load_jax()(*pose1, size1, *pose2, size2)
    shape2 = shapes_of(m.geom_type[g2], size2, hull_vertices(m, g2))
    reach = const(pairs.reach, geom_xpos)
    if stage.name == "hfield":
        return stage.load_jax()(*pose1, fields_under(m, pairs), *pose2, shape2, reach)
    shape1 = shapes_of(m.geom_type[g1], size1, hull_vertices(m, g1))
    solids = (solids_of(m, g1, size1), solids_of(m, g2, size2)) if pairs.slots.max() > 1 else None
    dist, pos, frame = stage.load_jax()(*pose1, shape1, *pose2, shape2, reach, solids)
    kept = np.nonzero(np.arange(dist.shape[1]) < pairs.slots[:, None])  # the slots that a pair has
    return dist[kept], pos[kept], frame[kept]


def narrowphase(m: Any, geom_xpos: jax.Array, geom_xmat: jax.Array) -> tuple[jax.Array, ...]:
    """One candidate contact per slot.

    Args: geom_xpos (ngeom, 3) [m], geom_xmat (ngeom, 9).
    Returns:
        contact_dist (nslot,) [m]: signed distance, large in an unused slot.
        contact_pos (nslot, 3) [m]: midway between the surfaces.
        contact_frame (nslot, 9): rows normal (from geom1 to geom2), tangent, tangent.
        contact_active (nslot,) bool: whether dist is within margin + gap, so that MuJoCo lists the contact.
    """
    dists, poss, frames, slots = [], [], [], []
    reach = np.asarray(m.cand_margin, np.float64) + np.asarray(m.cand_gap)
    most = np.bincount(m.slot_cand, minlength=m.ncand)
    for code, stage in enumerate(NARROWPHASE.values()):
        # (1) the pairs of one type
        cand = np.flatnonzero(np.asarray(m.cand_type) == code)
        if not cand.size:
            continue
        pairs = GeomPairs(np.asarray(m.cand_geom1)[cand], np.asarray(m.cand_geom2)[cand], reach[cand], most[cand])
        dist, pos, frame = pair_contacts(m, stage, pairs, geom_xpos, geom_xmat)

        # (2) their slots
        slots.append(np.flatnonzero(np.isin(m.slot_cand, cand)))
        dists.append(dist.reshape(-1))
        poss.append(pos.reshape(-1, 3))
        frames.append(frame.reshape(-1, 9))
    if not slots:
        empty = jnp.zeros(0, geom_xpos.dtype)
        return empty, empty.reshape(0, 3), empty.reshape(0, 9), jnp.zeros(0, bool)

    # (3) in slot order
    row = np.argsort(np.concatenate(slots))
    contact_dist = jnp.concatenate(dists)[row]
    contact_active = contact_dist <= const(reach[m.slot_cand], geom_xpos)
    return contact_dist, jnp.concatenate(poss)[row], jnp.concatenate(frames)[row], contact_active
