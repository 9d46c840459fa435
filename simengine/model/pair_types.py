"""The types of geom pairs: which geoms each handles, how many contacts it has, and how much code it is."""

from __future__ import annotations

from typing import NamedTuple


class PairType(NamedTuple):
    """A type of geom pair with its own narrowphase.

    Attributes:
        name: stem of its `.cu` and `_jax.py`, and of its kernel.
        geoms: pairs of MuJoCo's geom types that it handles, in lower case, the lower type first.
        slots: most contacts of a pair.
        heavy: whether its narrowphase is too much code for the kernels of simple models; the others are called light.
        shared: whether a pair has so many contacts that the lanes of a world share the work on it.
        plain: whether its narrowphase, though heavy, has little more code than a light one.
    """

    name: str
    geoms: tuple[tuple[str, str], ...]
    slots: int
    heavy: bool = False
    shared: bool = False
    plain: bool = False


# Pairs of the general convex narrowphase: those with one contact, those with two if a capsule lies flat, and those with
# up to four if faces lie flat. Without the flag multiccd, all have one.
SMOOTH: tuple[tuple[str, str], ...] = (
    *((other, "ellipsoid") for other in ("sphere", "capsule", "ellipsoid")),
    *(("ellipsoid", other) for other in ("cylinder", "box", "mesh")),
    ("sphere", "mesh"),
)
LYING: tuple[tuple[str, str], ...] = (("capsule", "cylinder"), ("capsule", "mesh"))
FLAT: tuple[tuple[str, str], ...] = (
    *((other, "mesh") for other in ("cylinder", "box", "mesh")),
    *(("cylinder", "cylinder"), ("cylinder", "box")),
)
CONVEX = (*SMOOTH, *LYING, *FLAT)

# For boxes and meshes in height fields, MuJoCo finds the least penetration only if there is a margin; without one it
# reports too little for a fifth to two thirds of the contacts of bodies at rest on a terrain. This engine always finds
# it.
HFIELD: tuple[tuple[str, str], ...] = tuple(
    ("hfield", other) for other in ("sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")
)

# The pair types, in the order of their codes.
PAIRS: tuple[PairType, ...] = (
    PairType("plane_sphere", (("plane", "sphere"),), 1),
    PairType("plane_capsule", (("plane", "capsule"),), 2),
    PairType("sphere_sphere", (("sphere", "sphere"),), 1),
    PairType("sphere_capsule", (("sphere", "capsule"),), 1),
    PairType("capsule_capsule", (("capsule", "capsule"),), 2),
    PairType("plane_box", (("plane", "box"),), 4, heavy=True, plain=True),
    PairType("plane_cylinder", (("plane", "cylinder"),), 4, heavy=True, plain=True),
    PairType("plane_ellipsoid", (("plane", "ellipsoid"),), 1, heavy=True, plain=True),
    PairType("sphere_cylinder", (("sphere", "cylinder"),), 1, heavy=True),
    PairType("sphere_box", (("sphere", "box"),), 1, heavy=True),
    PairType("capsule_box", (("capsule", "box"),), 2, heavy=True),
    PairType("box_box", (("box", "box"),), 8, heavy=True),
    PairType("convex", CONVEX, 4, heavy=True),
    PairType("plane_mesh", (("plane", "mesh"),), 4, heavy=True),
    PairType("hfield", HFIELD, 50, heavy=True, shared=True),  # mjMAXCONPAIR
)
PAIR_TYPES: tuple[str, ...] = tuple(pair.name for pair in PAIRS)
PAIR_SLOTS: tuple[int, ...] = tuple(pair.slots for pair in PAIRS)
PAIR_CODE: dict[tuple[str, str], int] = {geoms: code for code, pair in enumerate(PAIRS) for geoms in pair.geoms}
"""Index into PAIRS of two geom types, the lower one first."""
HEAVY_PAIRS: tuple[bool, ...] = tuple(pair.heavy for pair in PAIRS)
