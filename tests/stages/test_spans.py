"""Candidate pairs whose bounds are tested in vectors: no contact is lost, and no pair is near that tests one by one
reject."""

from __future__ import annotations

import itertools

import mujoco
import numpy as np
import pytest

from simengine.model import load_table
from simengine.model.pairs import geom_pairs, pair_table
from tests.stages.harness import Memory, arguments, call, function, near_list
from tests.stages.harness_chain import single

WORLDS = 6
BODIES = 7
GEOMS = 6
SHAPES = ('type="box" size="0.08 0.06 0.05"', 'type="cylinder" size="0.06 0.05"', 'size="0.07"')


def crowd() -> mujoco.MjModel:
    """Bodies of several geoms, with margins of their own, above two planes."""
    bodies = "".join(
        "<body><freejoint/>"
        + "".join(
            f'<geom {SHAPES[(b + g) % 3]} pos="{0.1 * g - 0.3:g} {0.02 * b:g} 0" margin="{0.01 * (b == 2)}"/>'
            for g in range(GEOMS)
        )
        + "</body>"
        for b in range(BODIES)
    )
    planes = (
        '<geom type="plane" size="2 2 1" pos="0 0 -0.3"/><geom type="plane" size="2 2 1" euler="0 90 0" pos="-1 0 0"/>'
    )
    return mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{planes}{bodies}</worldbody></mujoco>")


def near(monkeypatch: pytest.MonkeyPatch, flag: str, dtype: str) -> list[np.ndarray]:
    """Near pairs of each world, and the counts of contacts and rows, by kernels built with a flag."""
    mj = crowd()
    rng = np.random.default_rng(8)
    qpos = np.zeros((WORLDS, BODIES, 7))
    qpos[:, :, :3] = rng.uniform(-0.25, 0.25, size=(WORLDS, BODIES, 3))
    qpos[:, :, 3:] = rng.normal(size=(WORLDS, BODIES, 4))
    memory = Memory(load_table(mj), dtype, WORLDS, 2000, 0)
    memory.set({"qpos": qpos.reshape(WORLDS, -1), "world_status": np.zeros(WORLDS, np.int32)})
    with monkeypatch.context() as patch:
        patch.setenv("CXXFLAGS", f"-Og {flag}")
        function.cache_clear()
        for name in ("kinematics", "collision_general"):
            call(single(name), memory, arguments(single(name), memory))
    function.cache_clear()
    tally = memory.own("pair_tally")[:, 0]
    listed = [near_list(memory, "near_cand")[world, :number].copy() for world, number in enumerate(tally)]
    return [*listed, memory.own("ncon").copy(), memory.own("nefc").copy()]


@pytest.mark.parametrize(("dtype", "waiting"), [("float32", 16), pytest.param("float64", 512, marks=pytest.mark.slow)])
def test_spans_list_pairs_that_tests_one_by_one_list(monkeypatch: pytest.MonkeyPatch, dtype: str, waiting: int) -> None:
    expected = near(monkeypatch, "-DMOST_SPHERES=0", dtype)
    assert min(len(pairs) for pairs in expected[:WORLDS]) > 32
    found = near(monkeypatch, f"-DMOST_WAITING={waiting}", dtype)
    for ours, theirs in zip(found[:WORLDS], expected[:WORLDS], strict=True):
        assert len(ours) > 16
        assert (np.diff(ours) > 0).all()
        assert set(ours) <= set(theirs)
    for ours, theirs in zip(found[WORLDS:], expected[WORLDS:], strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_runs_without_boxes_list_the_same_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    for ours, theirs in zip(
        near(monkeypatch, "-DMOST_RUNS=0", "float32"), near(monkeypatch, "", "float32"), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_pairs_of_a_span_follow_each_other() -> None:
    mj = crowd()
    table = pair_table(mj, geom_pairs(mj))
    starts, pairs = table["span_adr"], len(table["cand_geom1"])
    assert starts[0] == 0
    assert starts[-1] == pairs
    assert len(starts) - 1 < pairs / 2
    for first, end in itertools.pairwise(starts):
        number = end - first
        assert number > 0
        np.testing.assert_array_equal(table["cand_geom1"][first:end], table["cand_geom1"][first])
        np.testing.assert_array_equal(table["cand_geom2"][first:end], table["cand_geom2"][first] + np.arange(number))
        assert len({*table["cand_margin"][first:end]}) == len({*table["cand_gap"][first:end]}) == 1


def test_spans_with_the_same_second_geoms_share_a_run() -> None:
    mj = crowd()
    table = pair_table(mj, geom_pairs(mj))
    starts, runs = table["span_adr"], table["run_geom"]
    assert len(runs) < (len(starts) - 1) / 2
    for span, (first, number) in enumerate(runs[table["span_run"]]):
        assert first == table["cand_geom2"][starts[span]]
        assert number == starts[span + 1] - starts[span]


def test_a_model_without_pairs_has_no_spans() -> None:
    table = load_table(mujoco.MjModel.from_xml_string("<mujoco/>"))
    assert table.nspan == table.nrun == 0
    assert table.span_adr.tolist() == [0]
