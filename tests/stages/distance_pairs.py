"""Sensors of distances between geoms of every two types, which collide with nothing, in random poses."""

from __future__ import annotations

from functools import cache

import mujoco
import numpy as np

from tests.stages.convex_pairs import ROCK, SHAPES

GEOMS = {**SHAPES, "hfield": 'type="hfield" hfield="hills"'}
TYPES = ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")
PAIRS = tuple(
    (one, other) for k, one in enumerate(TYPES) for other in TYPES[k:] if not {one, other} <= {"plane", "hfield"}
)
"""Every two types that have a distance in MuJoCo, the lower one first."""
CUTOFF = 0.2
KINDS = ("distance", "normal", "fromto")


def _hills() -> str:
    """A field whose heights differ by up to 8 cm."""
    rng = np.random.default_rng(2)
    heights = " ".join(f"{x:.3f}" for x in rng.uniform(0, 1, 49))
    return f'<hfield name="hills" nrow="7" ncol="7" size="0.5 0.5 0.08 0.1" elevation="{heights}"/>'


def _sensors(number: int, what: str) -> str:
    """The three kinds between a pair; the last one from the moving side to the other."""
    ends = f"a{number}", f"b{number}"
    each = zip(KINDS, (ends, ends, ends[::-1]), strict=True)
    return "".join(f'<{kind} {what}1="{one}" {what}2="{other}" cutoff="{CUTOFF}"/>' for kind, (one, other) in each)


@cache
def model() -> mujoco.MjModel:
    """A fixed first geom and a free second one for each pair; MuJoCo's searches run until they converge."""
    corners = " ".join(f"{x:.4f}" for x in ROCK.ravel())
    bodies, sensors = "", ""
    for i, (one, other) in enumerate(PAIRS):
        bodies += f'<body name="a{i}"><geom name="a{i}" {GEOMS[one]}/></body>'
        bodies += f'<body name="b{i}"><freejoint/><geom name="b{i}" {GEOMS[other]}/></body>'
        # MuJoCo measures height fields of bodies only
        sensors += _sensors(i, "body" if one == "hfield" else "geom")
    return mujoco.MjModel.from_xml_string(f"""<mujoco>
      <option gravity="0 0 0" ccd_tolerance="1e-12" ccd_iterations="500"/>
      <default><geom contype="0" conaffinity="0"/></default>
      <asset><mesh name="rock" vertex="{corners}"/>{_hills()}</asset>
      <worldbody>{bodies}</worldbody><sensor>{sensors}</sensor></mujoco>""")


@cache
def poses(number: int, seed: int = 1) -> np.ndarray:
    """qpos (n, nq), exact in float32: some deep in each other, most near, some too far for the cutoff."""
    rng = np.random.default_rng(seed)
    out = np.zeros((number, len(PAIRS), 7))
    out[..., :3] = rng.uniform(-0.35, 0.35, size=(number, len(PAIRS), 3))
    out[..., 3:] = rng.normal(size=(number, len(PAIRS), 4))
    return out.reshape(number, -1).astype(np.float32).astype(np.float64)


def by_mujoco(qpos: np.ndarray) -> np.ndarray:
    """Readings (n, pairs, 10): distance, normal, and the segment."""
    mj = model()
    data = mujoco.MjData(mj)
    out = []
    for state in qpos:
        data.qpos[:] = state
        mujoco.mj_forward(mj, data)
        out.append(data.sensordata.copy())
    return np.array(out).reshape(len(qpos), len(PAIRS), 10)
