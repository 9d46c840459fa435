"""Ground for legged robots: a plane, or a height field of our own."""

from __future__ import annotations

import jax.numpy as jnp
import mujoco
import numpy as np

from simengine_envs.task import Array

CELL = 0.2  # [m] side of a cell of the height field
HALF = 24.0  # [m] half the side of the height field
_SPACINGS = (2.0, 0.8, CELL)  # [m] distance of the hills and bumps
_SHARES = (0.5, 0.3, 0.2)  # of the height, for each spacing
_DEPTH = 1.0  # [m] thickness of the ground below its lowest point


def rough_heights(seed: int = 0) -> np.ndarray:
    """Heights of rough ground in units of its greatest height, rows along y and columns along x.

    Args:
        seed: seed of the random numbers.

    Returns:
        (2 HALF / CELL + 1, 2 HALF / CELL + 1) in [0, 1].
    """
    rng, count = np.random.default_rng(seed), round(2 * HALF / CELL) + 1
    total = np.zeros((count, count))
    for spacing, share in zip(_SPACINGS, _SHARES, strict=True):
        coarse = rng.uniform(0, 1, (int(2 * HALF / spacing) + 2,) * 2)
        at = np.arange(count) * CELL / spacing
        low = np.minimum(at.astype(int), len(coarse) - 2)
        part = at - low
        rows = coarse[low] * (1 - part)[:, None] + coarse[low + 1] * part[:, None]
        total += share * (rows[:, low] * (1 - part) + rows[:, low + 1] * part)
    scaled: np.ndarray = (total - total.min()) / (total.max() - total.min())
    return scaled


def lay_ground(spec: mujoco.MjSpec, height: float) -> None:
    """Put ground under a robot, in place of the geom "floor" if there is one.

    Args:
        spec: the model, which is changed.
        height: greatest height of rough ground [m]; 0 for a plane.
    """
    floor = spec.geom("floor")
    if floor is not None:
        spec.delete(floor)
    look = {"name": "floor", "material": _tiles(spec), "rgba": [1, 1, 1, 1], "contype": 1, "conaffinity": 1}
    if height == 0:
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[40, 40, 1], **look)
        return
    heights = rough_heights()
    rows, columns = heights.shape
    size = [HALF, HALF, height, _DEPTH]
    spec.add_hfield(name="ground", nrow=rows, ncol=columns, size=size, userdata=heights.ravel())
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_HFIELD, hfieldname="ground", **look)


def _tiles(spec: mujoco.MjSpec) -> str:
    """Name of a material of tiles, on which films show how a robot moves. The model gets it if it has none."""
    name = "tiles"
    if spec.material(name) is None:
        checker = mujoco.mjtTexture.mjTEXTURE_2D, mujoco.mjtBuiltin.mjBUILTIN_CHECKER
        colors = {"rgb1": [0.56, 0.58, 0.56], "rgb2": [0.64, 0.66, 0.64]}
        spec.add_texture(name=name, type=checker[0], builtin=checker[1], width=64, height=64, **colors)
        material = spec.add_material(name=name, texrepeat=[1, 1], texuniform=True)
        material.textures[int(mujoco.mjtTextureRole.mjTEXROLE_RGB)] = name
    return name


def height_near(heights: np.ndarray, place: Array) -> Array:
    """Greatest height of a height field within two cells of points.

    Args:
        heights: heights of the field (rows, columns) [m].
        place: x and y of the points, (n, 2) [m], not at the edge of the field.

    Returns:
        (n,) [m].
    """
    field = jnp.asarray(heights)
    column, row = jnp.round((place + HALF) / CELL).astype(jnp.int32).T
    steps = range(-2, 3)
    return jnp.max(jnp.stack([field[row + i, column + j] for i in steps for j in steps]), axis=0)
