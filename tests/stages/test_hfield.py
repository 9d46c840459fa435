"""Geoms on height fields against MuJoCo: the same contacts in the same order, on the host and in JAX."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from simengine import check_model, load_model
from simengine.model import load_table
from simengine.model.pair_types import PAIRS
from simengine.physics.collision.narrowphase_jax import narrowphase
from simengine.physics.kinematics.kinematics_jax import kinematics
from tests.helpers.oracle import quick_jit
from tests.models import compile_model
from tests.stages.contacts import Found, by_host, by_mujoco

SHAPES = (
    *('type="sphere" size="0.12"', 'type="capsule" size="0.07 0.1"', 'type="ellipsoid" size="0.15 0.1 0.08"'),
    *('type="cylinder" size="0.1 0.1"', 'type="box" size="0.1 0.12 0.08"', 'type="mesh" mesh="rock"'),
)
ROCK = "0.1 0 -.08 -.03 .1 -.08 -.1 -.05 -.07 .05 -.08 -.08 .05 .04 .1 -.05 .05 .09"
HALF, HEIGHT, BASE = (0.9, 0.6), 0.3, 0.2
TOLERANCE = {"float64": (1e-9, 1e-6, 1e-5), "float32": (1e-4, 1e-4, 1e-3)}
"""Of dist [m], pos [m] and frame; all but a few contacts are as exact as TYPICAL."""
TYPICAL = (1e-6, 1e-6, 2e-5)

JAX_STATES = 12


def field_model(shapes: tuple[str, ...], rows: int, columns: int, margin: float = 1e-3) -> mujoco.MjModel:
    """Free bodies that touch nothing but a rough field, which is turned."""
    heights = np.random.default_rng(1).uniform(0, 1, (rows, columns))
    heights = " ".join(f"{h:.3f}" for h in heights.ravel())
    bodies = "".join(f'<body><freejoint/><geom {shape} contype="0"/></body>' for shape in shapes)
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option ccd_tolerance="1e-12" ccd_iterations="500"/><asset><mesh name="rock" vertex="{ROCK}"/>'
        f'<hfield name="land" nrow="{rows}" ncol="{columns}" size="{HALF[0]} {HALF[1]} {HEIGHT} {BASE}" '
        f'elevation="{heights}"/></asset><worldbody><geom type="hfield" hfield="land" margin="{margin}" '
        f'pos="0.1 0 -0.1" euler="5 -8 30" conaffinity="0"/>{bodies}</worldbody></mujoco>'
    )


def poses(mj: mujoco.MjModel, count: int, seed: int = 0) -> np.ndarray:
    """qpos (count, nq), exact in float32: over, in and under the field, and beyond its edges."""
    rng = np.random.default_rng(seed)
    out = rng.normal(size=(count, mj.nq // 7, 7))
    box = np.array([HALF[0], HALF[1], (HEIGHT + BASE) / 2]) + 0.12
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, mj.geom_quat[0])
    local = rng.uniform(-box, box, size=(*out.shape[:2], 3)) + np.array([0, 0, (HEIGHT - BASE) / 2])
    out[..., :3] = local @ turn.reshape(3, 3).T + mj.geom_pos[0]
    return out.reshape(count, -1).astype(np.float32).astype(np.float64)


def compare(ours: list[Found], theirs: list[Found], dtype: str) -> None:
    errors = []
    for state, (found, wanted) in enumerate(zip(ours, theirs, strict=True)):
        np.testing.assert_array_equal(found[0], wanted[0], err_msg=f"contacts of state {state}")
        if not len(found[0]):
            continue
        each = [np.abs(a - b).reshape(len(found[0]), -1) for a, b in zip(found[1:], wanted[1:], strict=True)]
        errors.append(np.column_stack([error.max(axis=1, initial=0.0) for error in each]))
    every = np.concatenate(errors)
    assert (every.max(axis=0) <= TOLERANCE[dtype]).all(), every.max(axis=0)
    assert (np.percentile(every, 95, axis=0) <= TYPICAL).all(), np.percentile(every, 95, axis=0)


@cache
def rough(shapes: tuple[str, ...] = SHAPES) -> tuple[mujoco.MjModel, np.ndarray, list[Found]]:
    """A body of every shape on a rough field, states, and MuJoCo's contacts in them."""
    mj = field_model(shapes, 7, 9)
    qpos = poses(mj, 60)
    return mj, qpos, by_mujoco(mj, qpos)


def test_the_states_cover_every_shape_in_many_ways() -> None:
    _, _, wanted = rough()
    geoms = np.concatenate([c.geoms[:, 1] for c in wanted])
    dist = np.concatenate([c.dist for c in wanted])
    for geom in range(1, 1 + len(SHAPES)):
        mine = dist[geoms == geom]
        assert len(mine) > 60
        assert (mine < -0.02).any()
        assert max(np.count_nonzero(c.geoms[:, 1] == geom) for c in wanted) > 3
        assert any(np.count_nonzero(c.geoms[:, 1] == geom) == 0 for c in wanted)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_host_agrees_with_mujoco(dtype: str) -> None:
    mj, qpos, wanted = rough()
    compare(by_host(mj, qpos, dtype), wanted, dtype)


@pytest.mark.slow
@pytest.mark.parametrize(
    "shapes", [SHAPES[1::4], pytest.param(SHAPES, marks=pytest.mark.slow)], ids=["round and with faces", "all"]
)
def test_jax_agrees_with_mujoco_and_has_gradients(shapes: tuple[str, ...]) -> None:
    """Each shape takes JAX a compilation of seconds."""
    mj, qpos, wanted = rough(shapes)
    qpos, wanted, table = qpos[:JAX_STATES], wanted[:JAX_STATES], load_table(mj)

    def contacts(q: jax.Array) -> tuple[jax.Array, ...]:
        *_, geom_xpos, geom_xmat = kinematics(table, q, jnp.zeros((0, 3)), jnp.zeros((0, 4)))
        return narrowphase(table, geom_xpos, geom_xmat)

    def depth(q: jax.Array) -> tuple[jax.Array, tuple[jax.Array, ...]]:
        found = contacts(q)
        return jnp.where(found[3], found[0], 0.0).sum(), found

    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        gradient, found = quick_jit(jax.vmap(jax.grad(depth, has_aux=True)))(qpos)
    geoms = np.column_stack((table.cand_geom1, table.cand_geom2))[table.slot_cand]
    each = zip(*map(np.asarray, found), strict=True)
    compare([Found(geoms[a], d[a], p[a], f[a]) for d, p, f, a in each], wanted, "float64")
    # the derivative by a geom's position is the sum of its normals
    positions = np.asarray(gradient).reshape(len(qpos), -1, 7)[..., :3]
    for slope, contacts_of_state in zip(positions, wanted, strict=True):
        second, frame = contacts_of_state.geoms[:, 1], contacts_of_state.frame
        sums = [frame[second == 1 + i, :3].sum(axis=0) for i in range(len(shapes))]
        np.testing.assert_allclose(slope, sums, atol=1e-4)


def test_jax_traces_prisms_with_strict_shapes_and_types() -> None:
    """Compiling takes the slow tests seconds for each shape; this traces one."""
    table = load_table(field_model(SHAPES[:1], 3, 3))

    def contacts(pos: jax.Array, mat: jax.Array) -> tuple[jax.Array, ...]:
        return narrowphase(table, pos, mat)

    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        found = jax.eval_shape(contacts, jnp.zeros((2, 3)), jnp.zeros((2, 9)))
    assert found[0].shape == (table.sizes["nslot"],)


LEANING = """
<mujoco>
  <option ccd_tolerance="1e-10"/>
  <asset>
    <hfield name="hills" nrow="6" ncol="6" size="1 1 0.3 0.2" elevation="
      0.7 1 0.4 0.1 0.5 0 0 0.2 0.3 0.8 0 0.9 0.8 0.8 0.6 0 0.4 0.8 0.3 0.3 0.7 0.2 0.8 1 0.8 0 0 0.6 0.1 0 0.9 0.1 0.5
      0.6 0.8 0.4"/>
  </asset>
  <worldbody>
    <geom type="hfield" hfield="hills"/>
    <body><freejoint/><geom type="cylinder" size="0.15 0.07"/></body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize(("dtype", "most"), [("float64", 1e-6), ("float32", 1e-4)])
def test_a_cap_that_leans_on_an_edge_touches_with_its_rim(dtype: str, most: float) -> None:
    """The angle between them is so small that its cosine is one in float32."""
    mj, rng = mujoco.MjModel.from_xml_string(LEANING), np.random.default_rng(1)
    place = np.array([0.4506, -0.2764, -0.3034, 0.38662, 0.77673, 0.48944, 0.08762])
    qpos = place + rng.uniform(-1, 1, (40, 7)) * np.repeat((1e-3, 5e-5), (3, 4))
    for found, wanted in zip(by_host(mj, qpos, dtype), by_mujoco(mj, qpos), strict=True):
        np.testing.assert_allclose(found.pos, wanted.pos, rtol=0, atol=most)


def test_a_pair_has_no_more_contacts_than_mujoco_lists() -> None:
    assert next(pair for pair in PAIRS if pair.name == "hfield").slots == mujoco.mjMAXCONPAIR
    mj = field_model(('type="box" size="0.5 0.4 0.1"',), 20, 20)
    qpos = poses(mj, 12)
    wanted = by_mujoco(mj, qpos)
    assert sum(len(c[0]) == mujoco.mjMAXCONPAIR for c in wanted) > 3
    compare(by_host(mj, qpos, "float64"), wanted, "float64")


def test_a_robot_on_a_field_agrees_with_mujoco_stage_by_stage() -> None:
    report = check_model(compile_model("terrain"), backend="host", dtype="float32", num_states=40, num_steps=40)
    assert report.passed, report
    assert len(report.coverage.pairs) == len(SHAPES)


def test_boxes_and_meshes_penetrate_as_in_mujoco_with_a_margin() -> None:
    _, qpos, _ = rough()
    touching = field_model(SHAPES[4:], 7, 9, margin=0.0)
    bodies = qpos.reshape(len(qpos), -1, 7)[:, 4:].reshape(len(qpos), -1)
    least = field_model(SHAPES[4:], 7, 9, margin=1e-9)
    compare(by_host(touching, bodies, "float64"), by_mujoco(least, bodies), "float64")


def test_checks_compare_boxes_without_a_margin_with_mujocos_least_penetration() -> None:
    model = load_model(field_model(SHAPES[4:], 7, 9, margin=0.0))
    settings = {"backend": "host", "dtype": "float64", "num_states": 20, "num_steps": 20}
    report = check_model(model, **settings)
    assert report.passed, report
    assert report.widened == 1e-9
    assert {*report.coverage.pairs} == {"hfield-box", "hfield-mesh"}
    assert "MuJoCo does not find the least penetration" in report.verdict()
