"""`simengine bench peers`: rows, absent peers, failures of peers, the plot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from simengine.backends.select import available_backends
from simengine.cli.bench.peers.agreement import _Jitter, compare
from simengine.cli.bench.peers.engine import Engine, OverflowedError
from simengine.cli.bench.peers.models import SETS, chosen_models
from simengine.cli.bench.peers.mujoco_cpu import Batch, Rollout
from simengine.cli.bench.peers.ours import Simengine
from simengine.cli.bench.peers.problem import Named, Problem, State, make_problem
from simengine.cli.bench.peers.registry import PEERS
from simengine.cli.bench.peers.report import plot_speeds
from simengine.cli.main import main
from simengine.cli.simulations import oracle
from simengine.zoo import pile_xml

pytestmark = pytest.mark.skipif(bool(available_backends()["host"]), reason="needs a C++ compiler")

QUICK = ["--worlds", "3", "--warmup", "20", "--steps", "20", "--seconds", "0.5", "--repeats", "2"]
BALL = """<mujoco><option solver="PGS"/><worldbody><geom type='plane' size='9 9 1'/>
<body pos='0 0 0.1'><freejoint/><geom size='0.1'/></body></worldbody></mujoco>"""

DRIVEN = """<mujoco><worldbody><body><joint name='a' axis='0 1 0' damping='1'/><geom size='.05' fromto='0 0 0 .5 0 0'
type='capsule'/><body pos='.5 0 0'><joint name='b' axis='0 1 0' damping='1'/><geom size='.05' fromto='0 0 0 .3 0 0'
type='capsule' contype='0' conaffinity='0'/></body></body></worldbody><actuator><motor joint='a' gear='5'/><motor
joint='b'/></actuator></mujoco>"""


class Cramped(Rollout):
    """MuJoCo with room for a number of rows, which it exceeds until it is prepared with more."""

    name = "cramped"
    newton_only = True
    needed = 0

    def prepare(self, problem: Problem) -> None:
        super().prepare(problem)
        self._room = problem.rows

    def step(self, steps: int) -> float:
        if self._room < self.needed:
            raise OverflowedError(f"room for {self._room} rows")
        return super().step(steps)

    def about(self) -> dict[str, Any]:
        return {"room_contacts": 1, "room_rows": self._room}


class Missing(Rollout):
    name = "missing"

    @classmethod
    def absent(cls) -> str:
        return "missing is not installed; run pip install missing"


class Refusing(Rollout):
    name = "refusing"

    def prepare(self, problem: Problem) -> None:
        raise NotImplementedError("no such\n joints")


class Wrong(Rollout):
    name = "wrong"

    def qacc(self) -> np.ndarray:
        return 1.5 * super().qacc()


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> None:
    for peer in (Cramped, Missing, Refusing, Wrong):
        monkeypatch.setitem(PEERS, peer.name, peer)


def bench(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, Any]:
    """Run the command, and return its JSON."""
    assert main(["bench", "peers", *arguments, *QUICK, "--backend", "host", "--json", "-"]) == code
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def test_rows_table_file_and_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, picture = tmp_path / "deep" / "out.json", tmp_path / "deep" / "out.png"
    models = ["hopper", "pile:mixed:2"]
    named = ["--peers", "mujoco.rollout", "mujoco.batch"]
    assert main(["bench", "peers", *models, *named, *QUICK, "--json", str(out), "--plot", str(picture)]) == 0
    printed, result = capsys.readouterr().out, json.loads(out.read_text())
    rows = result["rows"]
    engines = ["simengine", "mujoco.rollout", "mujoco.batch"]
    assert [(row["model"], row["engine"]) for row in rows] == [(m, e) for m in models for e in engines]
    assert (result["benchmark"], result["device"], result["absent"]) == ("peers", "cpu", {})
    assert {"hardware", "versions", "date", "command"} <= set(result)
    for row in rows:
        assert row["agrees"]
        assert (row["worlds"], row["repeats"], row["checked_worlds"], row["runs_on"]) == (3, 2, 3, "cpu")
        assert len(row["all_steps_per_s"]) == 2
        assert f"{row['steps_per_s']:,}" in printed
    for ours, peer in ((rows[0], rows[1]), (rows[3], rows[5])):
        assert peer["ratio"] == pytest.approx(ours["steps_per_s"] / peer["steps_per_s"], abs=1e-3)
    hopper, pile = result["models"]
    assert (hopper["nv"], hopper["nu"], hopper["integrator"]) == (6, 3, "rk4")
    assert pile["most_rows"] >= pile["rows"] > 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    plot_speeds(rows, tmp_path / "again.png")  # a file of results has all that the plot needs
    assert (tmp_path / "again.png").read_bytes() == picture.read_bytes()


def test_all_engines_time_the_same_steps() -> None:
    """Peers of the CPU end in one state, which is that of MuJoCo stepped by hand."""
    ((model,), _) = chosen_models(["half_cheetah"], [], None)
    problem = make_problem(model, 3, seed=1)
    ends = []
    for kind in (Rollout, Batch):
        engine = kind("cpu", "float64")
        engine.prepare(problem)
        engine.step(7)
        engine.set_state(problem.start)
        assert engine.step(25) > 0
        ends.append(engine.state())
        engine.close()
    assert ends[0].qpos == pytest.approx(ends[1].qpos, abs=1e-9)
    assert not np.allclose(ends[0].qpos, problem.start.qpos)


@pytest.mark.parametrize("plan_bytes", [1, 10**6])
def test_simengine_takes_the_sets_of_controls_in_turn(plan_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many steps one call makes, step k has set k modulo the number of sets."""
    monkeypatch.setattr("simengine.cli.bench.peers.ours._PLAN_BYTES", plan_bytes)
    ((model,), _) = chosen_models(["half_cheetah"], [], None)
    problem = make_problem(model, 3, seed=1)
    engine = Simengine("cpu", "float32", "host")
    engine.prepare(problem)
    assert engine.step(25) > 0
    found = engine.state()
    engine.set_state(problem.start)
    for step in range(25):
        engine.simulation.step(ctrl=problem.controls[step % len(problem.controls)])
    assert np.array_equal(engine.state().qpos, found.qpos)
    engine.close()


@pytest.mark.usefixtures("peers")
def test_an_absent_peer_is_said_and_the_others_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "peers", "hopper", "--peers", "missing", "mujoco.batch", *QUICK, "--json", "-"]) == 0
    captured = capsys.readouterr()
    assert "missing is not installed; run pip install missing\n" in captured.err
    result = json.loads(captured.out)
    assert list(result["absent"]) == ["missing"]
    assert [row["engine"] for row in result["rows"]] == ["simengine", "mujoco.batch"]


@pytest.mark.usefixtures("peers")
def test_peers_that_refuse_or_differ_are_rows_and_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    _, refusing, wrong = bench(capsys, "hopper", "--peers", "refusing", "wrong")["rows"]
    assert refusing["error"] == "NotImplementedError: no such joints"
    assert (wrong["agrees"], wrong["worlds_outside"], wrong["worlds_borderline"]) == (False, 3, 0)
    assert main(["bench", "peers", "hopper", "--peers", "refusing", *QUICK]) == 0
    assert "refusing on hopper, 3 worlds: NotImplementedError: no such joints" in capsys.readouterr().out


@pytest.mark.usefixtures("peers")
def test_room_is_doubled_until_nothing_overflows(capsys: pytest.CaptureFixture[str]) -> None:
    Cramped.needed = 60
    row = bench(capsys, "pile:mixed:2", "--peers", "cramped")["rows"][1]
    assert 60 <= row["room_rows"] < 120
    Cramped.needed = 10**6
    row = bench(capsys, "pile:mixed:2", "--peers", "cramped")["rows"][1]
    assert row["error"].startswith("OverflowedError: room for ")


@pytest.mark.usefixtures("peers")
def test_an_engine_that_overflows_while_it_is_timed_makes_all_of_its_repeats_with_more_room(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Cramped.needed = 0
    room = bench(capsys, "pile:mixed:2", "--peers", "cramped")["rows"][1]["room_rows"]
    repeats = []

    def crowded(self: Cramped, steps: int) -> float:
        if steps == 20 and self._room == room:
            repeats.append(self._room)
            if len(repeats) == 2:
                raise OverflowedError(f"room for {room} rows")
        return Rollout.step(self, steps)

    monkeypatch.setattr(Cramped, "step", crowded)
    row = bench(capsys, "pile:mixed:2", "--peers", "cramped")["rows"][1]
    assert len(repeats) == 2
    assert row["room_rows"] == 2 * room
    assert len(row["all_steps_per_s"]) == row["repeats"] == 2


@pytest.mark.usefixtures("peers")
def test_a_peer_without_pgs_changes_the_solver_of_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "ball.xml"
    file.write_text(BALL, encoding="utf-8")
    Cramped.needed = 0
    result = bench(capsys, str(file), "--peers", "cramped")
    assert result["models"][0]["solver"] == "newton"
    assert "solve with Newton" in result["changes"][0]
    assert bench(capsys, str(file), "--peers", "mujoco.rollout")["models"][0]["solver"] == "pgs"


def test_disagreement_fails(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(oracle.BOUND, "float32", 0.0)
    assert not bench(capsys, "hopper", "--peers", "mujoco.rollout", code=1)["rows"][0]["agrees"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["hopper", "--peers", "mujoco.rolout"], "did you mean 'mujoco.rollout'"),
        (["unitree_g"], "did you mean 'unitree_g1'"),
        (["hoper"], "did you mean 'hopper'"),
        (["pile:mixd:3"], "did you mean 'mixed'"),
        (["pile:mixed:many"], "does not end with a whole number"),
        (["robot:x"], "does not end with a whole number"),
        (["no/such.xml"], "no model file at 'no/such.xml'"),
    ],
)
def test_wrong_names(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "peers", *arguments, *QUICK]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_sets_name_models_that_exist() -> None:
    models, absent = chosen_models([], ["gymnasium"], None)
    assert [model.name for model in models] == list(SETS["gymnasium"])
    assert absent == {}
    for name in SETS["heaps"]:
        _, kind, bodies = name.split(":")
        assert f"pile_{kind}_{bodies}" in pile_xml(int(bodies), kind)


def test_worlds_differ_and_the_seed_decides() -> None:
    ((model,), _) = chosen_models(["ant"], [], None)
    assert isinstance(model, Named)
    first, again, other = (make_problem(model, 4, seed) for seed in (0, 0, 1))
    assert np.array_equal(first.start.qpos, again.start.qpos)
    assert not np.allclose(first.start.qpos, other.start.qpos)
    assert not np.allclose(first.start.qpos[0], first.start.qpos[1])
    quaternions = first.start.qpos[:, 3:7]
    assert np.linalg.norm(quaternions, axis=1) == pytest.approx(np.ones(4), abs=1e-6)


def test_the_plot_leaves_failures_out(tmp_path: Path) -> None:
    speeds = [
        {"model": "a", "engine": "x", "worlds": worlds, "steps_per_s": 10 * worlds, "all_steps_per_s": [9 * worlds]}
        for worlds in (8, 64)
    ]
    rows = [*speeds, {"model": "a", "engine": "y", "worlds": 8, "error": "too large"}]
    for name in ("out.png", "out.svg"):
        plot_speeds(rows, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    plot_speeds([], tmp_path / "empty.png")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mujoco-warp", "mjx", "brax"])
@pytest.mark.filterwarnings("ignore")
def test_peers_of_the_gpu_run_on_the_cpu_too(name: str) -> None:
    """They step, and those with MuJoCo's contacts end near MuJoCo."""
    kind = PEERS[name]
    if reason := kind.absent():
        pytest.skip(reason)
    mj = mujoco.MjModel.from_xml_string(DRIVEN)
    problem = make_problem(Named("driven", mj, mj.qpos0.copy()), 3, seed=0).with_room(20, 40)
    ends = []
    for engine in (kind("cpu", "float32"), Rollout("cpu", "float64")):
        assert isinstance(engine, Engine)
        engine.prepare(problem)
        engine.step(10)
        engine.set_state(problem.start)
        engine.step(10)
        ends.append((engine.state(), engine.qacc()))
    assert ends[0][0].qpos == pytest.approx(ends[1][0].qpos, abs=1e-2)
    assert np.isfinite(ends[0][1]).all()


def test_rounding_decides_where_geoms_just_touch() -> None:
    """A ball that touches a plane without depth has a contact or none; a ball above it has none for sure."""
    for height, borderline in (("0.1", 1), ("0.2", 0)):
        mj = mujoco.MjModel.from_xml_string(BALL.replace("0 0 0.1'", f"0 0 {height}'"))
        state = State(mj.qpos0[None], np.zeros((1, mj.nv)), np.zeros((1, 0)))
        problem = Problem("ball", mj, state, np.zeros((10, 1, 0)))
        engine = Wrong("cpu", "float64")
        engine.prepare(problem)
        agreement = compare(engine, problem)
        assert (agreement.worlds, agreement.outside, agreement.borderline) == (1, 1, borderline)


def test_rounding_moves_vertices_of_meshes() -> None:
    """Faces that are parallel but for a rounding of their corners may be either of them, so corners move, too."""
    mj = mujoco.MjModel.from_xml_string(
        "<mujoco><asset><mesh name='m' vertex='0 0 0 1 0 0 0 1 0 0 0 1'/></asset>"
        "<worldbody><body><freejoint/><geom type='mesh' mesh='m'/></body></worldbody></mujoco>"
    )
    before, size = mj.mesh_vert.copy(), 1e-5
    state = State(mj.qpos0[None], np.zeros((1, mj.nv)), np.zeros((1, 0)))
    jitter = _Jitter(Problem("mesh", mj, state, np.zeros((1, 1, 0))), state, size)
    assert not jitter.decides(0, np.array([0.0, 0.0, -9.81, 0.0, 0.0, 0.0]), 1e-3)
    moved = np.abs(jitter._mj.mesh_vert - before)
    assert (moved > 0).any()
    assert (moved <= 1.1 * size * np.abs(before)).all()
    np.testing.assert_array_equal(mj.mesh_vert, before)
