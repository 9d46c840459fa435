"""Rangefinders over a height field against MuJoCo: over, in and under it, beside it, and along its grid."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.physics.sensors.ray_hfield_jax import Field, hfield
from simengine.physics.sensors.ray_jax import into_geom
from tests.helpers.oracle import quick_jit

RAYS, STATES, HALF, HEIGHT, BASE = 40, 25, (0.9, 0.6), 0.3, 0.2


@cache
def model() -> mujoco.MjModel:
    """A probe with rangefinders in all directions, and a field that is turned."""
    rng = np.random.default_rng(2)
    heights = " ".join(f"{h:.3f}" for h in rng.uniform(0, 1, 6 * 8))
    directions = [*np.eye(3), *-np.eye(3), *rng.normal(size=(RAYS - 6, 3))]
    sites = "".join(f'<site name="s{i}" zaxis="{x} {y} {z}"/>' for i, (x, y, z) in enumerate(directions))
    sensors = "".join(f'<rangefinder site="s{i}"/>' for i in range(RAYS))
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><asset><hfield name="land" nrow="6" ncol="8" size="{HALF[0]} {HALF[1]} {HEIGHT} {BASE}" '
        f'elevation="{heights}"/></asset><worldbody><geom type="hfield" hfield="land" pos="0.1 0 -0.1" '
        f'euler="5 -8 30"/><body><freejoint/><geom size="0.01" contype="0" conaffinity="0"/>{sites}</body>'
        f"</worldbody><sensor>{sensors}</sensor></mujoco>"
    )


@cache
def sample() -> tuple[np.ndarray, np.ndarray]:
    """qpos (STATES, 7), exact in float32, and MuJoCo's distances (STATES, RAYS)."""
    mj, rng = model(), np.random.default_rng(0)
    data, turn = mujoco.MjData(mj), np.zeros(9)
    mujoco.mju_quat2Mat(turn, mj.geom_quat[0])
    local = rng.uniform([-1.2, -0.9, -0.4], [1.2, 0.9, 0.6], size=(STATES, 3))
    qpos = np.column_stack([local @ turn.reshape(3, 3).T + mj.geom_pos[0], rng.normal(size=(STATES, 4))])
    qpos[::2, 3:] = mj.geom_quat[0]  # along the field's axes
    qpos = qpos.astype(np.float32).astype(np.float64)
    wanted = np.zeros((STATES, RAYS))
    for row, q in zip(wanted, qpos, strict=True):
        data.qpos[:] = q
        mujoco.mj_forward(mj, data)
        row[:] = data.sensordata
    return qpos, wanted


def compare(found: np.ndarray, wanted: np.ndarray, atol: float) -> None:
    """Equal but for the few rays that graze an edge, where rounding decides what they meet."""
    far = np.abs(found - wanted) > atol
    assert far.mean() <= (0.005 if atol > 1e-6 else 0.0), (found[far], wanted[far])


def test_rays_hit_and_miss() -> None:
    _, wanted = sample()
    assert 0.2 < (wanted >= 0).mean() < 0.8


@pytest.mark.parametrize(("dtype", "atol"), [("float64", 1e-9), ("float32", 2e-5)])
def test_rangefinders_of_the_host_agree_with_mujoco(dtype: str, atol: float) -> None:
    qpos, wanted = sample()
    sim = Simulation(load_model(model()), num_worlds=STATES, backend="host", dtype=dtype)
    sim.set_state(qpos=qpos)
    sim.forward()
    compare(np.asarray(sim.field("sensordata")), wanted, atol)
    sim.close()


def test_rangefinders_of_jax_agree_with_mujoco_and_have_gradients() -> None:
    qpos, wanted = sample()
    mj, table = model(), load_model(model())
    field, data = Field(table.hfield_data.reshape(6, 8), table.hfield_size[0]), mujoco.MjData(mj)
    points, directions = np.zeros((STATES, RAYS, 3)), np.zeros((STATES, RAYS, 3))
    for i, q in enumerate(qpos):
        data.qpos[:] = q
        mujoco.mj_forward(mj, data)
        points[i], directions[i] = data.site_xpos, data.site_xmat[:, 2::3]
    pos, mat = jnp.asarray(data.geom_xpos[:1]), jnp.asarray(data.geom_xmat[:1])

    def distance(along: jax.Array, point: jax.Array, direction: jax.Array) -> tuple[jax.Array, jax.Array]:
        moved = point + along[:, None] * direction
        found = hfield(*into_geom(pos, mat, moved, direction), field)
        return found.sum(), found

    rays = points.reshape(-1, 3), directions.reshape(-1, 3)
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        slope, found = quick_jit(jax.grad(distance, has_aux=True))(jnp.zeros(STATES * RAYS), *rays)
    compare(np.asarray(found), wanted.ravel(), 1e-9)
    # a step along the ray is a step nearer
    np.testing.assert_allclose(slope, np.where(wanted.ravel() >= 0, -1.0, 0.0), atol=1e-6)
