"""Piles: free bodies above a bin, which fall into it and come to rest on each other."""

from __future__ import annotations

import math

import numpy as np

_SHAPES = {
    "sphere": 'type="sphere" size="0.1"',
    "capsule": 'type="capsule" size="0.07 0.08"',
    "box": 'type="box" size="0.1 0.08 0.06"',
}
PILES = (*_SHAPES, "mixed")
"""Kinds of piles."""

_SPACING = 0.3  # initial distance of neighbours [m]


def pile_xml(bodies: int, kind: str) -> str:
    """MJCF of free bodies on a lattice above a bin; the bin's floor is about as large as a face of a cube of them.

    Args:
        bodies: number of bodies.
        kind: one of PILES.

    Raises:
        ValueError: the kind is unknown, or there are no bodies.
    """
    if kind not in PILES or bodies < 1:
        raise ValueError(f"there is no pile of {bodies} bodies of kind {kind!r}; choose from {', '.join(PILES)}")
    rng = np.random.default_rng(bodies)
    side = max(2, math.ceil(bodies ** (1 / 3)))
    names = [kind] if kind != "mixed" else list(_SHAPES)
    parts = []
    for i in range(bodies):
        level, place = divmod(i, side * side)
        x, y = _SPACING * (np.array(divmod(place, side)) - (side - 1) / 2) + rng.uniform(-0.02, 0.02, 2)
        angles = " ".join(f"{angle:.1f}" for angle in rng.uniform(0, 360, 3))
        where = f'pos="{x:.4f} {y:.4f} {0.2 + _SPACING * level:.4f}" euler="{angles}"'
        parts.append(f"<body {where}><freejoint/><geom {_SHAPES[names[i % len(names)]]}/></body>")
    wall = _SPACING * (side + 1) / 2
    walls = "".join(
        f'<geom type="plane" size="9 9 1" pos="{-wall * x} {-wall * y} 0" zaxis="{x} {y} 0"/>'
        for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1))
    )
    return f"""
<mujoco model="pile_{kind}_{bodies}">
  <option timestep="0.004"/><size memory="1G"/>
  <worldbody><geom type="plane" size="9 9 1"/>{walls}{"".join(parts)}</worldbody>
</mujoco>
"""
