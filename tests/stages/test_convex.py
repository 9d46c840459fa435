"""Convex pairs against MuJoCo: the same number of contacts, and the same contacts, on the host and in JAX."""

from __future__ import annotations

from collections import Counter
from copy import copy
from functools import cache
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from simengine import Simulation, check_model, load_model
from simengine.check.optimal import reach
from simengine.check.order import contact_order
from simengine.errors import UnsupportedModelError
from simengine.model import ModelTable, load_table
from simengine.physics.collision.narrowphase_jax import narrowphase
from simengine.physics.kinematics.kinematics_jax import kinematics
from tests.helpers.oracle import quick_jit
from tests.models import compile_model, gymnasium_path
from tests.stages.contacts import Found, by_host, by_mujoco
from tests.stages.convex_pairs import PAIRS, SHAPES, drawn, model, poses

COUNT = 105
JAX_CASES = (("float64", 0.01, 30), ("float64", 0.01, COUNT), ("float32", 0.0, COUNT))
TOLERANCE = {"float64": (1e-5, 3e-5, 1e-4), "float32": (1e-5, 1e-3, 3e-3)}
"""Of dist [m], pos [m] and frame. MuJoCo's own normals are no better than 1e-5, nor is the line on a cylinder's side
that lies on a face where they point; and where a normal is almost that of a cylinder's cap, float32 does not tell them
apart; all but a few states are as exact as TYPICAL."""
TYPICAL = (5e-7, 1e-5, 1e-4)


@cache
def jax_function(margin: float, dtype: str, count: int) -> tuple[ModelTable, Any]:
    """The table, and the contacts of `count` states by the JAX form, compiled."""
    table = load_table(model(margin))
    blank = jnp.zeros((count, table.nq), dtype)
    return table, quick_jit(jax.vmap(lambda q: contacts_of(table, q))).lower(blank).compile()


def by_jax(margin: float, qpos: np.ndarray, dtype: str) -> list[Found]:
    table, function = jax_function(margin, dtype, len(qpos))
    dist, pos, frame, active = (np.asarray(v) for v in function(jnp.asarray(qpos, dtype)))
    geoms = np.column_stack((table.cand_geom1, table.cand_geom2))[table.slot_cand]
    return [Found(geoms[a], d[a], p[a], f[a]) for d, p, f, a in zip(dist, pos, frame, active, strict=True)]


def contacts_of(table: ModelTable, qpos: jax.Array) -> tuple[jax.Array, ...]:
    *_, geom_xpos, geom_xmat = kinematics(table, qpos, jnp.zeros((0, 3), qpos.dtype), jnp.zeros((0, 4), qpos.dtype))
    return narrowphase(table, geom_xpos, geom_xmat)


def compare(ours: list[Found], theirs: list[Found], dtype: str) -> None:
    errors = []
    for state, ((geoms, *values), (wanted_geoms, *wanted)) in enumerate(zip(ours, theirs, strict=True)):
        np.testing.assert_array_equal(geoms, wanted_geoms, err_msg=f"contacts of state {state}")
        order = contact_order(geoms, values[1], wanted[1])
        pairs = zip(values, wanted, strict=True)
        errors.append([np.abs(actual - expected[order]).max(initial=0.0) for actual, expected in pairs])
    worst = np.max(errors, axis=0)
    assert (worst <= TOLERANCE[dtype]).all(), (worst, np.argmax(errors, axis=0))
    typical = np.percentile(errors, 95, axis=0)
    assert (typical <= TYPICAL).all(), typical


@pytest.mark.parametrize("margin", [0.0, 0.01])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_host_agrees_with_mujoco(dtype: str, margin: float) -> None:
    qpos = poses(COUNT)
    compare(by_host(model(margin), qpos, dtype), by_mujoco(model(margin), qpos), dtype)


def test_single_contacts_are_half_way_between_the_surfaces() -> None:
    """Also where the points from which the normal was found are not the farthest along it."""
    mj, qpos = copy(model(0.01)), drawn(800, seed=1)
    mj.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_MULTICCD)
    qpos[:, 7 * PAIRS.index(("plane", "mesh")) + 2] = 1.0  # out of the way: a plane reaches without end
    data, met = mujoco.MjData(mj), Counter[int]()
    for q, (geoms, dist, pos, frame) in zip(qpos, by_host(mj, qpos, "float64"), strict=True):
        data.qpos[:] = q
        mujoco.mj_kinematics(mj, data)
        for pair, d, at, normal in zip(geoms.tolist(), dist, pos, frame[:, :3], strict=True):
            ends = reach(mj, data, pair[0], normal), -reach(mj, data, pair[1], -normal)
            assert abs(ends[1] - ends[0] - d) < 1e-8, pair
            assert abs(at @ normal - sum(ends) / 2) < 1e-7, pair
            met[pair[0] % len(PAIRS)] += 1
    assert min(met[k] for k, pair in enumerate(PAIRS) if "plane" not in pair) > 100, met


def test_normals_in_float32_are_those_of_float64() -> None:
    """Also where depths in float32 do not tell whether an edge, a face or a cap touches or only what is beside it."""
    mj, qpos = copy(model(0.0)), drawn(800, seed=8)
    mj.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_MULTICCD
    for fine, coarse in zip(by_host(mj, qpos, "float64"), by_host(mj, qpos, "float32"), strict=True):
        assert fine.geoms.tolist() == coarse.geoms.tolist()
        np.testing.assert_allclose(coarse.frame[:, :3], fine.frame[:, :3], rtol=0, atol=5e-5)


def test_what_hovers_above_a_wide_box_is_above_its_side_in_float32() -> None:
    """Points of cores that almost touch differ by little more than rounding, so their difference is no good normal."""
    mj = mujoco.MjModel.from_xml_string(
        "<mujoco><default><geom margin='0.01'/></default><worldbody><geom type='box' size='1 1 0.02'/>"
        "<body><freejoint/><geom type='cylinder' size='0.05 0.06'/></body></worldbody></mujoco>"
    )
    rng, qpos = np.random.default_rng(0), np.zeros((300, 7))
    for q in qpos:
        tilt = rng.uniform(-0.01, 0.01)
        mujoco.mju_euler2Quat(q[3:], np.array([rng.uniform(-3, 3), np.pi / 2 + tilt, 0.0]), "XYZ")
        q[:3] = *rng.uniform(-0.7, 0.7, size=2), 0.07 + 0.06 * abs(tilt) + 10 ** rng.uniform(-5, -3)
    qpos = qpos.astype(np.float32).astype(np.float64)
    data = mujoco.MjData(mj)
    for q, (_, dist, _, frame) in zip(qpos, by_host(mj, qpos, "float32"), strict=True):
        data.qpos[:] = q
        mujoco.mj_kinematics(mj, data)
        gap = -reach(mj, data, 1, np.array([0.0, 0.0, -1.0])) - 0.02
        assert 0 < gap < 2e-3
        assert abs(dist.min() - gap) < 1e-6
        assert (frame[:, 2] < 1e-7 - 1).all()


def test_the_contacts_of_a_capsule_come_in_mujocos_order() -> None:
    lines = {i for i, pair in enumerate(PAIRS) if "capsule" in pair and {*pair} & {"cylinder", "mesh"}}
    several = 0
    for margin in (0.0, 0.01):
        qpos = poses(COUNT)
        for ours, theirs in zip(by_host(model(margin), qpos, "float64"), by_mujoco(model(margin), qpos), strict=True):
            pairs = theirs[0][:, 0] % len(PAIRS)
            chosen = np.isin(pairs, list(lines))
            np.testing.assert_allclose(ours[2][chosen], theirs[2][chosen], atol=1e-4)
            several += sum(count > 1 for count in Counter(pairs[chosen].tolist()).values())
    assert several > 5


@pytest.mark.parametrize(
    ("dtype", "margin", "count"),
    [pytest.param(*case, marks=pytest.mark.slow) for case in JAX_CASES],
)
def test_jax_agrees_with_mujoco(dtype: str, margin: float, count: int) -> None:
    qpos = poses(count)
    compare(by_jax(margin, qpos, dtype), by_mujoco(model(margin), qpos), dtype)


def test_the_poses_cover_every_pair_deep_shallow_and_apart() -> None:
    deep, apart, several = Counter[int](), Counter[int](), Counter[int]()
    for geoms, dist, *_ in by_mujoco(model(0.01), poses(COUNT)):
        pairs = geoms[:, 0] % len(PAIRS)
        deep.update(pairs[dist < -0.03].tolist())
        apart.update(pairs[dist > 0].tolist())
        several.update(pair for pair, count in Counter(pairs.tolist()).items() if count > 1)
    assert len(deep) == len(PAIRS), deep
    assert sum(deep.values()) > 100, deep
    assert sum(apart.values()) > 10, apart
    assert sum(several.values()) > 15, several


@pytest.mark.slow
def test_gradients_of_contacts_are_those_of_finite_differences() -> None:
    table, function = jax_function(0.01, "float64", COUNT)
    qpos, step = poses(1, seed=5)[0], 1e-6

    def observed(dist: Any, pos: Any, frame: Any, active: Any) -> Any:
        values = jnp.concatenate([dist[..., None], pos, frame[..., :3]], axis=-1)
        return jnp.where(active[..., None], values, 0.0)

    jacobian = quick_jit(jax.jacobian(lambda q: observed(*contacts_of(table, q))))
    exact = np.asarray(jacobian(jnp.asarray(qpos)))
    assert np.isfinite(exact).all()
    shifts = step * np.eye(qpos.size)
    assert qpos.size <= COUNT

    def shifted(shift: np.ndarray) -> np.ndarray:
        near = np.resize(qpos, (COUNT, qpos.size))
        near[: qpos.size] += shift
        return np.asarray(observed(*function(jnp.asarray(near))))[: qpos.size]

    ahead, behind = shifted(shifts), shifted(-shifts)
    np.testing.assert_allclose(exact, np.moveaxis(ahead - behind, 0, -1) / (2 * step), atol=1e-4)


@pytest.mark.parametrize(("name", "dtype"), [("pusher", "float32"), ("pusher_v5", "float64")])
def test_pusher_agrees_with_mujoco_stage_by_stage(name: str, dtype: str) -> None:
    report = check_model(gymnasium_path(name), backend="host", dtype=dtype, num_states=60, num_steps=100)
    assert report.passed, report
    assert report.coverage.pairs["capsule-cylinder"] >= 10


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_shapes_that_lie_flat_agree_with_mujoco_stage_by_stage(dtype: str) -> None:
    report = check_model(compile_model("rubble"), backend="host", dtype=dtype, num_states=60, num_steps=60)
    assert report.passed, report
    assert {*report.coverage.pairs} == {
        *("capsule-cylinder", "capsule-mesh", "capsule-box"),
        *("cylinder-cylinder", "cylinder-box", "cylinder-mesh", "box-mesh", "mesh-mesh"),
    }


@pytest.mark.parametrize(("flag", "slots"), [("enable", 4), ("disable", 1)])
def test_flat_pairs_have_as_many_contacts_as_the_flag_allows(flag: str, slots: int) -> None:
    text = '<mujoco><option><flag multiccd="{}"/></option><worldbody><geom {}/><body><freejoint/><geom {}/></body>'
    model = load_model(text.format(flag, SHAPES["cylinder"], SHAPES["box"]) + "</worldbody></mujoco>")
    assert model.table.nslot == slots


def test_faces_with_too_many_corners_are_refused() -> None:
    around = np.linspace(0, 2 * np.pi, 1100, endpoint=False)
    corners = [f"{x:.6f} {y:.6f} {z}" for z in (-0.1, 0.1) for x, y in zip(np.cos(around), np.sin(around), strict=True)]
    text = (
        f'<mujoco><asset><mesh name="rock" vertex="{" ".join(corners)}"/></asset>'
        f"<worldbody><geom {SHAPES['mesh']}/><body><freejoint/><geom {SHAPES['box']}/></body></worldbody></mujoco>"
    )
    with pytest.raises(UnsupportedModelError, match="contacts of flat faces with 1104 corners"):
        load_model(text)


def prism(seed: int) -> np.ndarray:
    """Corners of a prism (n, 3) [m] whose base has many, irregular ones."""
    rng = np.random.default_rng(seed)
    angle = np.sort(rng.uniform(0, 2 * np.pi, 8 + seed))
    base = 0.1 * np.column_stack([np.cos(angle), rng.uniform(0.4, 1) * np.sin(angle)])
    return np.concatenate([np.column_stack([base, np.full(len(base), z)]) for z in (-0.1, 0.1)])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_prisms_on_a_plane_touch_in_the_corners_that_mujoco_chooses(dtype: str) -> None:
    number, rng = 6, np.random.default_rng(1)
    corners = [" ".join(f"{x:.5f}" for x in prism(seed).ravel()) for seed in range(number)]
    assets = "".join(f'<mesh name="m{i}" vertex="{text}"/>' for i, text in enumerate(corners))
    bodies = "".join(f'<body pos="{i} 0 0"><freejoint/><geom type="mesh" mesh="m{i}"/></body>' for i in range(number))
    mj = mujoco.MjModel.from_xml_string(
        f'<mujoco><asset>{assets}</asset><worldbody><geom type="plane" size="9 9 1"/>{bodies}</worldbody></mujoco>'
    )
    qpos = np.tile(mj.qpos0.reshape(number, 7), (40, 1, 1))
    qpos[..., 2] = 0.05
    qpos[..., 4:6] = 0.03 * rng.normal(size=(40, number, 2))
    qpos = qpos.reshape(40, -1).astype(np.float32).astype(np.float64)
    sim, data = Simulation(load_model(mj), num_worlds=len(qpos), backend="host", dtype=dtype), mujoco.MjData(mj)
    sim.set_state(qpos=qpos)
    sim.forward()
    for world, state in enumerate(qpos):
        data.qpos[:] = state
        mujoco.mj_forward(mj, data)
        contacts = sim.contacts(world)
        assert data.ncon > 3 * number
        np.testing.assert_array_equal(contacts.geom2, data.contact.geom[:, 1])
        np.testing.assert_allclose(contacts.pos, data.contact.pos, atol=1e-5)


BEVEL = 2e-5  # [m]


def test_edges_touch_where_they_cross_though_others_run_beside_them_in_float32() -> None:
    """A bar whose edges are narrow faces: the search may end at the other edge of one, which is as near as rounding."""
    size = (0.03, 0.01, 0.006)
    corners = [[sign * half for sign, half in zip(signs, size, strict=True)] for signs in product((-1, 1), repeat=3)]
    bevelled = [[v - np.sign(v) * BEVEL * (i == k) for i, v in enumerate(c)] for c in corners for k in range(3)]
    vertices = " ".join(f"{v:.6f}" for corner in bevelled for v in corner)
    model = load_model(f"""<mujoco><asset><mesh name="bar" vertex="{vertices}"/></asset><worldbody>
      <body><freejoint/><geom type="mesh" mesh="bar" mass="1"/></body>
      <body><freejoint/><geom type="box" size="0.03 0.03 0.03" mass="1"/></body></worldbody></mujoco>""")
    qpos = crossed(np.random.default_rng(1), 4000)[[2001, 2479, 2550]]
    sim = Simulation(model, len(qpos), backend="host")
    sim.set_state(qpos=qpos)
    sim.forward()
    data = mujoco.MjData(model.mj)
    for world in range(len(qpos)):
        data.qpos[:] = qpos[world]
        mujoco.mj_forward(model.mj, data)
        ours = sim.contacts(world)
        assert ours.ncon == data.ncon == 1
        np.testing.assert_allclose(ours.pos, data.contact.pos, atol=2e-6)
        np.testing.assert_allclose(ours.dist, data.contact.dist, atol=2e-7)
    sim.close()


def crossed(rng: np.random.Generator, number: int) -> np.ndarray:
    """Places of two free bodies about each other, (number, 14)."""
    qpos = np.zeros((number, 14))
    for first in (3, 10):
        turn = rng.normal(size=(number, 4))
        qpos[:, first : first + 4] = turn / np.linalg.norm(turn, axis=1)[:, None]
    away = rng.normal(size=(number, 3))
    length = np.linalg.norm(away, axis=1)[:, None]
    distance = rng.uniform(0.03, 0.05, size=(number, 1))
    qpos[:, 7:10] = away * distance / length
    return qpos


@pytest.mark.parametrize("tilt", [0.0, 1e-7, 1e-5, 1e-3])
def test_a_cylinder_that_stands_almost_upright_keeps_its_contacts_in_float32(tilt: float) -> None:
    text = (
        '<mujoco><worldbody><geom type="plane" size="1 1 1"/><body><freejoint/><geom {}/></body></worldbody></mujoco>'
    )
    mj = mujoco.MjModel.from_xml_string(text.format(SHAPES["cylinder"]))
    turns = np.random.default_rng(2).uniform(0, 2 * np.pi, size=(20, 2))
    data = mujoco.MjData(mj)
    qpos = np.zeros((len(turns), 7))
    for q, (spin, way) in zip(qpos, turns, strict=True):
        lean = np.array([1.0, tilt * np.cos(way), tilt * np.sin(way), 0.0])
        mujoco.mju_mulQuat(q[3:], lean, np.array([np.cos(spin), 0.0, 0.0, np.sin(spin)]))
        q[2] = 0.119
    sim = Simulation(load_model(mj), num_worlds=len(qpos), backend="host", dtype="float32")
    sim.set_state(qpos=qpos)
    sim.forward()
    for world, q in enumerate(qpos):
        data.qpos[:] = q.astype(np.float32)
        mujoco.mj_forward(mj, data)
        assert sim.contacts(world).ncon == data.ncon == 3
        np.testing.assert_allclose(np.sort(sim.contacts(world).dist), np.sort(data.contact.dist), atol=1e-6)
    sim.close()


def test_another_method_of_convex_collision_is_refused() -> None:
    text = '<mujoco><option><flag nativeccd="disable"/></option><worldbody>{}</worldbody></mujoco>'
    bodies = '<geom type="cylinder" size=".1 .1"/><body><freejoint/><geom type="capsule" size=".1 .1"/></body>'
    with pytest.raises(UnsupportedModelError, match="disable flag nativeccd"):
        load_model(text.format(bodies))
