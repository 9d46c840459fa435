"""`load_model`: its sources, the shapes of the model table, and MuJoCo's values in it."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import mujoco
import numpy as np
import pytest

from simengine import ModelError, load_model
from simengine.model import load_table
from simengine.model.blob import (
    BLOB_FIELDS,
    HEADER,
    HEADER_FIELDS,
    HEADER_REALS,
    HEADER_SCALARS,
    header_bytes,
    pack_models,
)
from simengine.model.gravcomp import LIMITED
from simengine.model.table import SIZES, TABLE, resolve
from tests.models import ALL, OWN, compile_model, gymnasium_path


def test_path_text_and_compiled_model_give_the_same_table(tmp_path: Path) -> None:
    path, compiled = gymnasium_path("ant"), tmp_path / "ant.mjb"
    mujoco.mj_saveModel(mujoco.MjModel.from_xml_path(str(path)), str(compiled))
    models = [
        load_model(path),
        load_model(str(path)),
        load_model(path.read_text()),
        load_model("\n  " + path.read_text()),
        load_model(mujoco.MjModel.from_xml_path(str(path))),
        load_model(compiled),
    ]
    first = models[0].table
    for table in (model.table for model in models):
        assert table.name == "ant"
        assert table.sizes == first.sizes
        for field in TABLE:
            np.testing.assert_array_equal(table.arrays[field.name], first.arrays[field.name], err_msg=field.name)


def test_a_loaded_model_loads_as_itself() -> None:
    model = load_model(OWN["pile"])
    assert load_model(model) is model


def test_files_beside_the_model_are_found(tmp_path: Path) -> None:
    """A relative include is looked up from the file's folder."""
    (tmp_path / "part.xml").write_text(
        '<mujoco><worldbody><body><freejoint/><geom size="0.1"/></body></worldbody></mujoco>'
    )
    whole = tmp_path / "whole.xml"
    whole.write_text('<mujoco model="whole"><include file="part.xml"/></mujoco>')
    assert load_model(whole).nv == 6


@pytest.mark.parametrize("name", ALL)
def test_table_shapes_and_types(name: str) -> None:
    mj = compile_model(name)
    model = load_table(mj)
    for field in TABLE:
        array = model.arrays[field.name]
        assert array.shape == resolve(field.dims, model.sizes), field.name
        assert array.dtype == (np.int32 if field.kind == "int" else np.float64), field.name
    assert set(model.sizes) == set(SIZES)
    for size in ("nq", "nv", "nu", "nbody", "njnt", "ngeom"):
        assert getattr(model, size) == getattr(mj, size)
    assert model.ncand == len(model.cand_geom1)
    assert model.nslot == len(model.slot_cand)


@pytest.mark.parametrize("name", ALL)
def test_fields_that_mujoco_has_are_mujocos(name: str) -> None:
    mj = compile_model(name)
    model = load_table(mj)
    for field in TABLE:
        theirs = getattr(mj, field.name, None)
        if isinstance(theirs, np.ndarray) and theirs.shape == model.arrays[field.name].shape:
            if field.name in ("actuator_biasprm", "tendon_adr", "tendon_num"):
                continue
            if field.name == "jnt_actfrclimited":
                theirs = theirs & (model.jnt_gravcomp != LIMITED)  # gravity compensation applies those limits
            np.testing.assert_array_equal(model.arrays[field.name], theirs, err_msg=field.name)
    for option in ("timestep", "gravity", "tolerance", "ls_tolerance", "impratio"):
        np.testing.assert_array_equal(getattr(model, f"opt_{option}"), getattr(mj.opt, option))


@pytest.mark.parametrize("name", ALL)
def test_derived_tree_fields_describe_the_tree(name: str) -> None:
    mj = compile_model(name)
    model = load_table(mj)
    order = model.level_body[:-1]
    assert sorted(order) == list(range(1, mj.nbody))
    depth = {0: 0}
    for body in range(1, mj.nbody):
        depth[body] = depth[int(mj.body_parentid[body])] + 1
    for level in range(model.nlevel):
        members = order[model.level_adr[level] : model.level_adr[level + 1]]
        assert {depth[int(body)] for body in members} == {level + 1}
    for body in range(mj.nbody):
        subtree = {body} | {b for b in range(mj.nbody) if body in ancestors(mj, b)}
        assert subtree == set(range(body, model.body_last[body] + 1))


def ancestors(mj: mujoco.MjModel, body: int) -> set[int]:
    """Bodies above a body."""
    found: set[int] = set()
    while body:
        body = int(mj.body_parentid[body])
        found.add(body)
    return found


GENERAL_ACTUATORS = ("actuators", "glider", "ropes")
"""Models whose moments are computed from the state."""


@pytest.mark.parametrize("name", [name for name in ALL if name not in GENERAL_ACTUATORS])
def test_moments_are_those_of_mujocos_actuators(name: str) -> None:
    mj = compile_model(name)
    model, data = load_table(mj), mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    theirs = np.zeros((mj.nu, mj.nv))
    mujoco.mju_sparse2dense(theirs, data.actuator_moment, data.moment_rownnz, data.moment_rowadr, data.moment_colind)
    ours = np.zeros((mj.nu, mj.nv))
    for joint in range(mj.njnt):
        first = model.jnt_momentadr[joint]
        mine = slice(first, first + model.jnt_momentnum[joint])
        assert (np.diff(model.moment_actuator[mine]) > 0).all()
        ours[model.moment_actuator[mine], mj.jnt_dofadr[joint]] = model.moment[mine]
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_limits_are_those_of_mujoco() -> None:
    mj = compile_model("mixed_tree")
    names = [mj.joint(j).name for j in load_table(mj).limit_id]
    assert names == ["along", "swivel", "shoulder", "reach", "wag"]
    mj = compile_model("tendons")
    ids = load_table(mj).limit_id.tolist()
    names = [mj.joint(i).name if i < mj.njnt else mj.tendon(i - mj.njnt).name for i in ids]
    assert names == ["lower", "left", "finger", "across"]


def test_wraps_are_listed_by_joint() -> None:
    mj = compile_model("tendons")
    model = load_table(mj)
    for joint in range(mj.njnt):
        first = model.jnt_wrapadr[joint]
        wraps = model.wrap_byjnt[first : first + model.jnt_wrapnum[joint]]
        assert wraps.tolist() == np.flatnonzero(mj.wrap_objid == joint).tolist()
    for wrap, tendon in enumerate(model.wrap_tenid):
        assert mj.tendon_adr[tendon] <= wrap < mj.tendon_adr[tendon] + mj.tendon_num[tendon]


def test_boxes_have_the_mass_and_inertia_of_the_bodies() -> None:
    mj = compile_model("sunken")
    model = load_table(mj)
    assert model.has_fluid
    a, b, c = model.body_box[1:].T
    inertia = np.stack([b**2 + c**2, a**2 + c**2, a**2 + b**2], axis=1) * mj.body_mass[1:, None] / 12
    np.testing.assert_allclose(inertia, mj.body_inertia[1:], rtol=1e-12)
    assert (model.body_box[0] == 0).all()


@pytest.mark.parametrize(
    ("option", "flags", "expected"),
    [
        ("", 0, False),
        ('density="1"', 0, True),
        ('viscosity="1"', 0, True),
        ('viscosity="1"', mujoco.mjtDisableBit.mjDSBL_SPRING, True),
        ('viscosity="1"', mujoco.mjtDisableBit.mjDSBL_SPRING | mujoco.mjtDisableBit.mjDSBL_DAMPER, False),
    ],
)
def test_a_model_has_a_fluid_where_mujoco_applies_one(option: str, flags: int, expected: bool) -> None:
    mj = mujoco.MjModel.from_xml_string(
        f'<mujoco><option {option}/><worldbody><body><freejoint/><geom size="0.1"/></body></worldbody></mujoco>'
    )
    mj.opt.disableflags = int(flags)
    data = mujoco.MjData(mj)
    data.qvel[:] = 1
    mujoco.mj_forward(mj, data)
    assert load_table(mj).has_fluid is expected
    assert bool(data.qfrc_fluid.any()) is expected


def test_bias_is_kept_for_affine_actuators_only() -> None:
    mj = compile_model("mixed_tree")
    bias = dict(
        zip((mj.actuator(i).name for i in range(mj.nu)), load_table(mj).actuator_biasprm[:, :3].tolist(), strict=True)
    )
    assert bias["push"] == [0, 0, 0]
    assert bias["turn"] == [0, -12, 0]
    assert bias["twist"] == [0.3, -1, -0.2]


def test_nefc_max_bounds_the_rows_of_any_state() -> None:
    model = load_table(OWN["pile"])
    slots = np.where(model.cand_condim[model.slot_cand] == 1, 1, 4)
    assert model.nefc_max == 2 * model.nlimit + slots.sum()


def test_models_without_joints_actuators_or_geoms_load() -> None:
    still = load_table('<mujoco model="still"><worldbody><body><geom size="0.1"/></body></worldbody></mujoco>')
    assert (still.nq, still.nv, still.nu, still.ncand) == (0, 0, 0, 0)
    inertia = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    bare = load_table(f"<mujoco><worldbody><body><freejoint/>{inertia}</body></worldbody></mujoco>")
    assert (bare.nq, bare.ngeom, bare.ncand, bare.name) == (7, 0, 0, "MuJoCo Model")


def test_an_unknown_table_field_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no field 'geom_colour'"):
        _ = load_table(OWN["pile"]).geom_colour


def test_models_can_be_copied_and_pickled() -> None:
    model = load_model(OWN["pile"])
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.qpos0, model.qpos0)
        assert other.table.sizes == model.table.sizes


def test_the_repr_says_which_model() -> None:
    assert repr(load_model(gymnasium_path("hopper"))).startswith("Model('hopper', nq=6, nv=6, nu=3")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_packed_tables_hold_every_field_of_every_model(dtype: str) -> None:
    models = [load_table(compile_model(name)) for name in ("ant", "pile", "mixed_tree")]
    headers, ints, reals = pack_models(models, dtype)
    assert (ints.dtype, reals.dtype) == (np.int32, np.dtype(dtype))
    for model, packed in zip(models, headers, strict=True):
        header = np.frombuffer(packed, dtype=np.int32, count=len(HEADER))
        assert header[: len(SIZES)].tolist() == list(model.sizes.values())
        assert header[len(SIZES)] == -(-model.nv // 4) * 4
        assert header[len(SIZES) + 1 : len(HEADER_SCALARS)].tolist() == [*model.options.values(), 0]
        for index, field in enumerate(BLOB_FIELDS, start=len(HEADER_SCALARS)):
            values = model.arrays[field.name].ravel()
            blob = ints if field.kind == "int" else reals
            np.testing.assert_array_equal(blob[header[index] :][: values.size], values.astype(blob.dtype))
        first = (4 * len(HEADER) + 7) // 8 * 8  # the header's numbers start on eight bytes
        numbers = np.frombuffer(packed, dtype=dtype, offset=first, count=HEADER_REALS)
        expected = np.concatenate([model.arrays[field.name].ravel() for field in HEADER_FIELDS])
        np.testing.assert_array_equal(numbers, expected.astype(dtype))
        assert len(packed) == header_bytes(dtype)
    assert {*HEADER_FIELDS, *BLOB_FIELDS} == set(TABLE)


def test_places_in_fours_begin_where_a_gpu_loads_four_at_once() -> None:
    points = np.random.default_rng(0).normal(size=(40, 3))
    vertices = " ".join(f"{x:.3f}" for x in (0.1 * points / np.linalg.norm(points, axis=1, keepdims=True)).ravel())
    mesh = f"<asset><mesh name='m' vertex='{vertices}'/></asset>"
    body = "<body pos='0 0 {}'><freejoint/><geom type='mesh' mesh='m'/></body>"
    models = [
        load_table(f"<mujoco>{mesh}<worldbody>{''.join(map(body.format, range(n)))}</worldbody></mujoco>")
        for n in (2, 3)
    ]
    headers, ints, _ = pack_models(models, "float32")
    for model, header in zip(models, headers, strict=True):
        packs = model.arrays["cube_pack"]
        assert packs.size >= 16 * model.sizes["ncubecell"] > 0
        first = int(np.frombuffer(header, np.int32, len(HEADER))[HEADER.index("cube_pack")])
        assert first % 4 == 0
        np.testing.assert_array_equal(ints[first : first + packs.size], packs.ravel())


def test_what_is_no_model_is_refused_by_type() -> None:
    with pytest.raises(
        ModelError, match=r"takes a name, a path, MJCF text or a mujoco.MjModel, not int; pass one of those"
    ):
        load_model(7)


@pytest.mark.parametrize("name", ALL)
def test_fields_of_a_model_are_mujocos(name: str) -> None:
    """Every public attribute that MjModel has too has its shape and its values."""
    model, mj = load_model(compile_model(name)), compile_model(name)
    shared = [field for field in dir(model) if not field.startswith("_") and hasattr(mj, field)]
    assert {"geom_friction", "actuator_gainprm", "exclude_signature", "nM", "opt"} <= set(shared)
    for field in shared:
        theirs = getattr(mj, field)
        if isinstance(theirs, np.ndarray | int):
            np.testing.assert_array_equal(getattr(model, field), theirs, err_msg=field)
            assert np.shape(getattr(model, field)) == np.shape(theirs), field


def test_fields_of_a_model_are_read_only() -> None:
    model = load_model("ant")
    with pytest.raises(ValueError, match="read-only"):
        model.geom_friction[0] = 0.1
    assert model.geom("floor").id == 0


def test_a_misspelt_field_is_answered_with_the_nearest() -> None:
    with pytest.raises(AttributeError, match=r"no field 'geom_frction' \(did you mean 'geom_friction'"):
        _ = load_model("ant").geom_frction
