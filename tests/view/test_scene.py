"""What is drawn of a model, against MuJoCo: rays hit the drawn triangles where they hit MuJoCo's geoms."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine.view import scene
from tests.models import compile_model
from tests.view.triangles import nearest_hit, rotation

MODELS = ("ant", "humanoid", "mixed_tree", "rubble", "terrain", "crates", "pusher")
RAYS = 30
ROUND = 0.03  # a circle is drawn with corners, which lie that much of its radius inside at most
PLANE, BOX, MESH, HFIELD = (
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{kind}")) for kind in ("PLANE", "BOX", "MESH", "HFIELD")
)

PLANES = """<mujoco><worldbody>
  <geom name="endless" type="plane" size="0 0 1"/>
  <geom name="small" type="plane" size="0.3 0.5 1" pos="0 0 1"/>
</worldbody></mujoco>"""

COLOURS = """<mujoco>
<asset>
  <texture name="half" type="2d" builtin="flat" rgb1="0.5 0.5 0.5" width="4" height="4"/>
  <material name="red" rgba="1 0 0 0.5"/>
  <material name="textured" texture="half" rgba="0.4 0.8 1 1"/>
</asset>
<worldbody>
  <geom size="1" rgba="0.1 0.2 0.3 0.4"/>
  <geom size="1" material="red"/>
  <geom size="1" material="red" rgba="0 1 0 1"/>
  <geom size="1" material="textured"/>
  <geom size="1" rgba="1 1 1 0"/>
</worldbody></mujoco>"""


def moved(name: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """A model away from its initial state."""
    mj = compile_model(name)
    data = mujoco.MjData(mj)
    mujoco.mj_integratePos(mj, data.qpos, np.random.default_rng(3).uniform(-1, 1, mj.nv), 0.4)
    mujoco.mj_kinematics(mj, data)
    return mj, data


def drawn_triangles(mj: mujoco.MjModel, data: mujoco.MjData, tile: float) -> dict[int, np.ndarray]:
    """Triangles of each geom in the world frame, (n, 3, 3), from the poses and scales that the page gets."""
    found: dict[int, list[np.ndarray]] = {}
    xpos, xmat = data.geom_xpos[None], data.geom_xmat.reshape(1, -1, 3, 3)
    for draw in scene.draws(mj, tile, whole_planes=True):
        positions, wxyz = scene.place(draw, xpos, xmat, np.zeros((1, 3)))
        for copy, geom in enumerate(draw.geom):
            vertices = (draw.shape.vertices * draw.scale[copy]) @ rotation(wxyz[copy]).T + positions[copy]
            found.setdefault(int(geom), []).append(vertices[draw.shape.faces])
    return {geom: np.concatenate(pieces) for geom, pieces in found.items()}


def mujoco_hit(mj: mujoco.MjModel, data: mujoco.MjData, geom: int, start: np.ndarray, direction: np.ndarray) -> float:
    kind = int(mj.geom_type[geom])
    if kind == MESH:
        return float(mujoco.mj_rayMesh(mj, data, geom, start, direction))
    if kind == HFIELD:
        return float(mujoco.mj_rayHfield(mj, data, geom, start, direction))
    return float(
        mujoco.mju_rayGeom(data.geom_xpos[geom], data.geom_xmat[geom], mj.geom_size[geom], start, direction, kind)
    )


@pytest.mark.parametrize("name", MODELS)
def test_rays_hit_what_is_drawn_where_they_hit_the_geom(name: str) -> None:
    mj, data = moved(name)
    rng = np.random.default_rng(0)
    drawn = drawn_triangles(mj, data, tile=50.0)
    visible = [geom for geom in range(mj.ngeom) if scene.geom_rgba(mj, geom)[3] > 0]
    assert sorted(drawn) == visible
    for geom in visible:
        reach = float(mj.geom_rbound[geom]) or 5.0
        is_round = mj.geom_type[geom] not in (PLANE, BOX, MESH, HFIELD)
        near = ROUND * mj.geom_size[geom].max() if is_round else 2e-6 * reach
        for _ in range(RAYS):
            away = rng.normal(size=3)
            away[2] = abs(away[2])
            start = data.geom_xpos[geom] + 3 * reach * away / np.linalg.norm(away)
            target = data.geom_xpos[geom] + 0.2 * reach * rng.uniform(-1, 1, 3)
            direction = (target - start) / np.linalg.norm(target - start)
            expected = mujoco_hit(mj, data, geom, start, direction)
            hit = nearest_hit(drawn[geom], start, direction)
            if expected >= 0 and hit >= 0:
                assert hit == pytest.approx(expected, abs=4 * near)  # a slanting ray goes further than it is off
            else:  # it passes by the geom, or by so little that the corners decide
                grazing = mujoco_hit(mj, data, geom, start + near * away, direction)
                assert hit == expected or grazing != expected


@pytest.mark.parametrize("name", MODELS)
def test_corners_lie_on_the_geom(name: str) -> None:
    mj, data = moved(name)
    for geom, triangles in drawn_triangles(mj, data, tile=50.0).items():
        if mj.geom_type[geom] in (PLANE, HFIELD):
            continue  # rays from their middles do not reach their surfaces from outside
        middle = data.geom_xpos[geom]
        size = mj.geom_size[geom]
        # not quite through the corner, where a ray passes by every face
        aside = 1e-4 * size[size > 0].min() * np.array([0.5, 0.7, -0.6])
        for corner in np.unique(triangles.reshape(-1, 3), axis=0)[::3]:
            start = 2 * corner - middle
            direction = (middle + aside - start) / np.linalg.norm(middle + aside - start)
            hit = mujoco_hit(mj, data, geom, start, direction)
            assert hit == pytest.approx(np.linalg.norm(corner - start), rel=1e-3)


@pytest.mark.parametrize("name", MODELS)
def test_worlds_do_not_touch_in_their_initial_state(name: str) -> None:
    mj = compile_model(name)
    data = mujoco.MjData(mj)
    mujoco.mj_kinematics(mj, data)
    solid = mj.geom_type != PLANE
    offsets = scene.grid_offsets(5, scene.spacing(mj))
    low = (data.geom_xpos[solid, :2] - mj.geom_rbound[solid, None]).min(0)
    high = (data.geom_xpos[solid, :2] + mj.geom_rbound[solid, None]).max(0)
    for a in range(5):
        for b in range(a):
            apart = np.abs(offsets[a, :2] - offsets[b, :2])
            assert (apart >= high - low).any()


def test_worlds_lie_in_rows_around_the_origin() -> None:
    offsets = scene.grid_offsets(9, 2.0)
    assert np.allclose(offsets.mean(0), 0)
    assert np.allclose(offsets[1] - offsets[0], (2, 0, 0))
    assert np.allclose(offsets[3] - offsets[0], (0, -2, 0))
    assert np.array_equal(scene.grid_offsets(1, 2.0), np.zeros((1, 3)))
    assert len(np.unique(scene.grid_offsets(64, 1.0), axis=0)) == 64


def test_copies_of_a_world_lie_at_its_offset() -> None:
    mj, data = moved("ant")
    xpos, xmat = np.stack([data.geom_xpos] * 3), np.stack([data.geom_xmat.reshape(-1, 3, 3)] * 3)
    offsets = scene.grid_offsets(3, 4.0)
    for draw in scene.draws(mj, 4.0):
        positions, wxyz = scene.place(draw, xpos, xmat, offsets)
        alone, upright = scene.place(draw, xpos[:1], xmat[:1], np.zeros((1, 3)))
        for world in range(3):
            part = slice(world * len(draw.geom), (world + 1) * len(draw.geom))
            assert np.allclose(positions[part], alone + offsets[world])
            assert np.allclose(wxyz[part], upright)


def test_height_field_has_the_corners_and_the_base_of_mujoco() -> None:
    mj = compile_model("terrain")
    half_x, half_y, _, depth = mj.hfield_size[0]
    (field,) = (draw.shape for draw in scene.draws(mj, 50.0) if draw.shape.name == "hfield 0")
    assert np.allclose(field.vertices[:, :2].max(0), (half_x, half_y))
    assert np.allclose(field.vertices.min(0), (-half_x, -half_y, -depth))
    heights = np.sort(mj.hfield_data * mj.hfield_size[0, 2])
    top = field.vertices[: mj.hfield_nrow[0] * mj.hfield_ncol[0], 2]
    assert np.allclose(np.sort(top), heights)


def test_one_draw_for_each_shape() -> None:
    mj = compile_model("humanoid")
    found = scene.draws(mj, 3.0)
    assert len({draw.name for draw in found}) == len(found)
    assert {draw.shape.name for draw in found} == {"square", "tube", "cap", "sphere"}


def test_quaternions_are_those_of_mujoco() -> None:
    rng = np.random.default_rng(1)
    turns = rng.normal(size=(200, 4))
    turns[:4] = np.eye(4)  # and by half a turn about each axis
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    mats = np.empty((len(turns), 9))
    for turn, mat in zip(turns, mats, strict=True):
        mujoco.mju_quat2Mat(mat, turn)
    same = np.abs(np.einsum("ni,ni->n", scene.quaternions(mats.reshape(-1, 3, 3)), turns))
    assert np.allclose(same, 1, atol=1e-12)


def sides(mj: mujoco.MjModel, name: str, **options: bool) -> np.ndarray:
    """Width and depth of a drawn plane."""
    (draw,) = scene.draws(mj, 2.0, **options)
    own = draw.geom == mj.geom(name).id
    return (draw.pos[own] + draw.scale[own]).max(0)[:2] - (draw.pos[own] - draw.scale[own]).min(0)[:2]


def test_planes_are_cut_to_the_part_of_their_world() -> None:
    mj = mujoco.MjModel.from_xml_string(PLANES)
    assert np.allclose(sides(mj, "endless"), (2, 2))
    assert np.allclose(sides(mj, "small"), (0.6, 1))
    assert np.allclose(sides(mj, "endless", whole_planes=True), (20, 20))
    assert np.allclose(sides(mj, "small", whole_planes=True), (0.6, 1))


def test_colours_are_those_of_mujoco() -> None:
    mj = mujoco.MjModel.from_xml_string(COLOURS)
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    pictured = mujoco.MjvScene(mj, 100)
    mujoco.mjv_updateScene(
        mj, data, mujoco.MjvOption(), None, mujoco.MjvCamera(), int(mujoco.mjtCatBit.mjCAT_ALL), pictured
    )
    expected = {geom.objid: geom.rgba for geom in pictured.geoms[: pictured.ngeom]}
    assert set(expected) == {0, 1, 2, 3}
    for geom in (0, 1, 2):
        assert np.allclose(scene.geom_rgba(mj, geom), expected[geom])
    assert np.allclose(scene.geom_rgba(mj, 3), (0.2, 0.4, 0.5, 1), atol=0.01)  # the mean of the texture tints it
    (draw,) = scene.draws(mj, 1.0)
    assert list(draw.geom) == [0, 1, 2, 3]  # the last is invisible
