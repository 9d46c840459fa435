"""Candidate pairs that are looked at only where clusters of geoms meet: the list is that of tests one by one."""

from __future__ import annotations

import itertools

import mujoco
import numpy as np
import pytest

from simengine.kernels.kernel import Kernel
from simengine.model import ModelTable, clusters, load_table
from simengine.model.params import WorldParameters
from simengine.plan import catalogue, contact_kernels
from tests.stages.harness import Memory, arguments, call, changed, function, near_list
from tests.stages.harness_chain import single
from tests.stages.harness_sanitizer import build, execute, record, supported

WORLDS = 24
SHAPES = ('type="box" size="0.3 0.05 0.2"', 'type="cylinder" size="0.12 0.05"', 'size="0.14"')
LISTED = ("near_cand", "near_adr", "search_near")


def room(still: int = 240) -> mujoco.MjModel:
    """A chain, a free body of many geoms and a mocap body among geoms that stand still, some of them turned or large.

    Some of these are the world's and the others are in nested bodies, before and behind those that move.
    """
    rng = np.random.default_rng(4)
    places = rng.uniform(-3, 3, (still, 3)) * (1, 1, 0.1)
    geoms = [
        f'<geom {SHAPES[k % 3]} pos="{x} {y} {z}" euler="0 {9 * k} {5 * k}" margin="{0.02 * (k % 7 == 0)}"/>'
        for k, (x, y, z) in enumerate(places)
    ]
    world, body, nested = ("".join(geoms[k::3]) for k in range(3))
    link = '<body pos="0 0 0.2"><joint axis="{}"/><geom type="capsule" size="0.04" fromto="0 0 0 0 0 0.2"/>'
    chain = "".join(link.format(axis) for axis in ("0 0 1", "0 1 0", "1 0 0")) + "</body>" * 3
    small = ('size="0.05"', 'type="box" size="0.04 0.04 0.04"')
    lump = "".join(f'<geom {small[k % 2]} pos="{0.12 * (k % 5)} {0.12 * (k // 5)} 0"/>' for k in range(20))
    free = f'<body pos="0 0 0.5"><freejoint/>{lump}</body><body mocap="true"><geom size="0.1"/></body>'
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><worldbody>{world}<geom type="plane" size="3 3 1" pos="0 0 -0.6"/>'
        f'<body pos="0.1 0 0.1" euler="0 0 10">{body}<body pos="0 0.1 0">{nested}</body></body>{chain}{free}'
        "</worldbody></mujoco>"
    )


def states(model: ModelTable) -> dict[str, np.ndarray]:
    """Worlds with bodies anywhere in the room; the last one is not healthy."""
    rng = np.random.default_rng(8)
    places, turns = rng.uniform(-1.5, 1.5, (WORLDS, 6)), rng.normal(size=(WORLDS, 4))
    places[:, 5] /= 4
    mocap = rng.uniform(-2, 2, (WORLDS, model.nmocap, 3))
    upright = np.tile((1.0, 0, 0, 0), (WORLDS, model.nmocap, 1))
    unhealthy = np.arange(WORLDS) == WORLDS - 1
    return {
        "qpos": np.column_stack([places, turns]),
        "mocap_pos": mocap,
        "mocap_quat": upright,
        "world_status": unhealthy.astype(np.int32),
    }


def listed(model: ModelTable, kernel: Kernel, dtype: str) -> list[list[np.ndarray]]:
    """What a kernel lists of each world."""
    memory = Memory(model, dtype, WORLDS, 10, 0)
    memory.set(states(model))
    for each in (single("kinematics"), kernel):
        call(each, memory, arguments(each, memory))
    assert not memory.broken_guards()
    near, searches, _ = memory.own("pair_tally").T
    ends = zip(near, near + 1, searches, strict=True)
    lists = (near_list(memory, LISTED[0]), near_list(memory, LISTED[1]), memory.own(LISTED[2]))
    return [[own[w, :end].copy() for own, end in zip(lists, each, strict=True)] for w, each in enumerate(ends)]


def one_by_one(monkeypatch: pytest.MonkeyPatch, model: ModelTable, dtype: str) -> list[list[np.ndarray]]:
    """What tests of all candidate pairs list, without vectors, as on a GPU."""
    return built(monkeypatch, "-DMOST_SPHERES=0", model, contact_kernels.SEARCHES[0], dtype)


def built(
    monkeypatch: pytest.MonkeyPatch, flag: str, model: ModelTable, kernel: Kernel, dtype: str
) -> list[list[np.ndarray]]:
    """What a kernel lists that is built with a flag, and without the code for height fields."""
    with monkeypatch.context() as patch:
        patch.setenv("CXXFLAGS", f"-Og -DHFIELDS=0 {flag}")
        function.cache_clear()
        found = listed(model, kernel, dtype)
    function.cache_clear()
    return found


def check_equal(found: list[list[np.ndarray]], expected: list[list[np.ndarray]]) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        for name, mine, other in zip(LISTED, ours, theirs, strict=True):
            np.testing.assert_array_equal(mine, other, err_msg=name)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_clusters_list_the_pairs_that_tests_one_by_one_list(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    model = load_table(room())
    assert model.nmeeting > 0
    expected = one_by_one(monkeypatch, model, dtype)
    assert sum(len(pairs) for pairs, _, _ in expected) > 100
    assert sum(len(searches) for _, _, searches in expected) > 5
    assert [len(pairs) for pairs in expected[-1]] == [0, 1, 0]
    check_equal(built(monkeypatch, "", model, contact_kernels.LISTING_BY_CLUSTERS, dtype), expected)


def test_geoms_that_stand_still_may_differ_in_size_between_worlds() -> None:
    """The boxes that follow from sizes are those of a model with these sizes."""
    mj = room()
    model, meaning = load_table(mj), WorldParameters(load_table(mj))
    sizes = np.stack([mj.geom_size * factor for factor in (1.0, 0.4, 1.7)])
    boxes = meaning.derive(np, {"geom_size": sizes})["cluster_box"].reshape(3, -1, 6)
    np.testing.assert_allclose(boxes[0], model.cluster_box, rtol=0, atol=1e-9)
    bounded = np.abs(model.cluster_box[:, 0]) < 1e6
    for larger, smaller in ((2, 0), (0, 1)):
        assert (boxes[larger, bounded, :3] < boxes[smaller, bounded, :3]).all()
        assert (boxes[larger, bounded, 3:] > boxes[smaller, bounded, 3:]).all()


def test_clusters_hold_every_pair_once_and_what_moves_together() -> None:
    mj = room()
    model = load_table(mj)
    np.testing.assert_array_equal(np.sort(model.meeting_cand), np.arange(model.ncand))
    root = clusters.roots(mj)[mj.geom_bodyid]
    of_geom = np.full(mj.ngeom, -1)
    for cluster, (first, end) in enumerate(itertools.pairwise(model.cluster_adr)):
        own = model.cluster_geom[first:end]
        of_geom[own] = cluster
        assert len({*root[own]}) == 1
        assert (root[own[0]] == 0) == (cluster < model.nstill)
    for (one, other), (first, end) in zip(model.meeting, itertools.pairwise(model.meeting_adr), strict=True):
        pairs = model.meeting_cand[first:end]
        both = np.sort([of_geom[model.cand_geom1[pairs]], of_geom[model.cand_geom2[pairs]]], axis=0)
        np.testing.assert_array_equal(both, np.repeat([[one], [other]], end - first, axis=1))
    mocap = mj.geom_bodyid[mj.body_mocapid[mj.geom_bodyid] >= 0]
    assert (clusters.roots(mj)[mocap] > 0).all()


def test_models_for_which_clusters_save_little_have_none() -> None:
    few = load_table(room(20))
    near = load_table(mujoco.MjModel.from_xml_string(heaped()))
    assert near.ncand > clusters.FEWEST_CULLED
    for model in (few, near):
        assert model.nmeeting == model.ncluster == model.nstill == 0
        assert model.cluster_adr.tolist() == model.meeting_adr.tolist() == [0]


def heaped() -> str:
    """Single geoms on each other, all of which move."""
    body = '<body pos="{} 0 0"><freejoint/><geom size="0.1"/></body>'
    return f"<mujoco><worldbody>{''.join(body.format(0.01 * k) for k in range(40))}</worldbody></mujoco>"


def test_models_whose_pairs_are_found_lose_their_clusters() -> None:
    model = load_table(room())
    model.solve_by_islands(True)
    model.find_pairs(True)
    assert model.nmeeting == model.nculled == 0
    model.find_pairs(False)
    assert model.nmeeting > 0


def test_frames_that_are_made_in_pieces_are_the_same() -> None:
    memory = Memory(load_table(room()), "float32", WORLDS, 10, 0)
    memory.set(states(memory.model))
    assert memory.model.ngeom % 32
    ours, theirs = memory.copy(), memory.copy()
    for of, kernel in ((theirs, catalogue.POSES), (ours, catalogue.POSES_OF_MANY[0])):
        call(kernel, of, arguments(kernel, of))
        assert not of.broken_guards()
        assert np.isfinite(of.own("geom_xmat")).all()
    for name in catalogue.POSES.produced:
        assert not changed(ours.arrays[name], theirs.arrays[name]).any(), name


@pytest.mark.sanitizer
@pytest.mark.parametrize(
    ("dtype", "flags"),
    [
        ("float64", ("-fsanitize=thread",)),
        ("float32", ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O0")),
    ],
)
def test_threads_that_share_a_world_list_the_same(dtype: str, flags: tuple[str, ...]) -> None:
    if not supported(flags[0]):
        pytest.skip(f"this compiler or machine lacks {flags[0]}")
    memory = Memory(load_table(room()), dtype, WORLDS, 10, 0)
    memory.set(states(memory.model))
    kernels = (catalogue.POSES_OF_MANY[0], contact_kernels.LISTING_BY_CLUSTERS, contact_kernels.CLUSTERS_BY_BLOCK)
    buffers, recorded = record(memory, ((k, arguments(k, memory)) for k in kernels))
    result = execute(build(kernels, dtype, 4, (*flags, "-DHFIELDS=0")), kernels, buffers, recorded)
    assert not result.reports, result.reports[:3000]
    assert result.status == 0
    for name in ("near_cand", "near_adr", "pair_tally"):
        np.testing.assert_array_equal(result.buffers[name], memory.arrays[name], err_msg=name)
    atol = {"float64": 1e-12, "float32": 1e-5}[dtype]  # sanitizers call other functions of the library
    for name in ("geom_xpos", "geom_xmat"):
        np.testing.assert_allclose(result.buffers[name], memory.arrays[name], rtol=0, atol=atol, err_msg=name)
