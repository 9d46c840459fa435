"""Fuzzing: what it draws, what it finds, what it makes of a finding, and the models that it found once."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import time
from pathlib import Path

import mujoco
import pytest

from simengine.cli.main import main
from simengine.fuzz import fuzz, read, read_all, replay
from simengine.fuzz.child import Child
from simengine.fuzz.corpus import save
from simengine.fuzz.draw import Draw
from simengine.fuzz.fuzz import _shared
from simengine.fuzz.generate import generate
from simengine.fuzz.judge import Outcome, judge
from simengine.fuzz.limits import slack_of
from simengine.fuzz.mutate import mutate
from simengine.fuzz.shrink import shrink
from tests.helpers.checkout import ROOT

CORPUS = ROOT / "tests" / "corpus"
QUICK = ("anchor_beyond_float32", "coaxial_on_a_slide", "fast_body", "mixed_solref", "sunken_sphere")
PENDULUM = """
<mujoco><worldbody><body><joint name="j" type="hinge" axis="0.3 0.2 1"/><geom size="0.10001" pos="0.1 0 0"/>
<body pos="0 0 1"><joint/><geom type="capsule" size="0.1 0.2" pos="0.2 0 0"/></body></body></worldbody></mujoco>
"""


def test_equal_seeds_draw_equal_models_that_mujoco_takes() -> None:
    drawn = [generate(f"these:{k}") for k in range(40)]
    assert drawn == [generate(f"these:{k}") for k in range(40)]
    assert len(set(drawn)) == 40
    for text in drawn:
        mujoco.MjModel.from_xml_string(text)


def test_the_models_have_every_feature_that_is_drawn() -> None:
    text = "".join(generate(k) for k in range(300))
    for part in (
        *('type="hinge"', 'type="slide"', 'type="ball"', 'type="free"', 'type="mesh"', 'type="hfield"', "mocap"),
        *('type="cylinder"', 'type="ellipsoid"', "<fixed", "<spatial", "<pulley", "<connect", "<weld", "<adhesion"),
        *("<muscle", "<position", "<pair", "<exclude", "<contact", "<fromto", "RK4", "implicitfast", "PGS", "elliptic"),
        *(
            "cranksite",
            "refsite",
            "affine",
            "<insidesite",
            "<camprojection",
            "<jointlimitfrc",
            "<tendonlimitpos",
            "o_solref",
        ),
    ):
        assert part in text, part


def test_mutations_change_models_and_many_still_compile() -> None:
    text, compiled = generate("to be mutated"), 0
    changed = [mutate(text, Draw(k)) for k in range(60)]
    assert len(set(changed)) > 50
    for each in changed:
        try:
            mujoco.MjModel.from_xml_string(each)
        except ValueError:
            continue
        compiled += 1
    assert compiled > 20


@pytest.mark.slow
def test_nothing_is_unexplained_in_a_minute(tmp_path: Path) -> None:
    report = fuzz(models=24, seconds=60, states=4, seed=1, corpus=tmp_path)
    assert report.passed, report.findings
    assert report.states > 50
    assert report.worst["qacc in float64"] < 1e-3
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_several_processes_compare_the_models_of_one() -> None:
    one, two = (fuzz(models=6, states=2, seed=1, jobs=jobs).as_dict() for jobs in (1, 2))
    for name in ("models", "sources", "states", "left_out", "worst", "explained"):
        assert one[name] == two[name], name
    with pytest.raises(ValueError, match="jobs=0"):
        fuzz(models=1, jobs=0)


def test_the_slack_of_a_solver_is_not_that_of_contacts_and_rows() -> None:
    newton, sweeps = (
        mujoco.MjModel.from_xml_string(f'<mujoco><option solver="{solver}"/></mujoco>') for solver in ("Newton", "PGS")
    )
    for stage in ("narrowphase", "constraint", "acceleration"):
        assert slack_of(sweeps, "float32", stage) == slack_of(newton, "float32", stage)
    for stage in ("solve", "sensor", "step"):
        assert slack_of(sweeps, "float32", stage) > slack_of(newton, "float32", stage)


@pytest.mark.parametrize("name", QUICK)
def test_a_model_that_failed_once_agrees(name: str) -> None:
    """These need few kernels. All of the corpus, in both precisions, take minutes."""
    case = read(CORPUS / f"{name}.xml")
    outcome = judge(case.text, backend="host", dtypes=("float64",), states=4, seed=case.seed)
    assert outcome.kind == "agrees", outcome


@pytest.mark.slow
def test_all_models_that_failed_once_agree() -> None:
    report = replay(read_all(CORPUS))
    assert report.passed, report.findings
    assert report.models["invalid"] == 0


def test_a_failing_model_shrinks_to_the_part_that_fails() -> None:
    small = shrink(PENDULUM, lambda text: "capsule" in text and _compiles(text), seconds=30)
    assert "capsule" in small
    assert 'name="j"' not in small
    assert small.count("<body") == 1
    assert "0.10001" not in small


def test_shrinking_ends_soon_after_the_time_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if each attempt takes as long as it may."""
    allowed = []

    def slow(_: Child, text: str, seed: int, within: float | None = None) -> Outcome:
        if within is not None:
            allowed.append(within)
            time.sleep(within)
        return Outcome("differs", ["qacc is off"], fields={"qacc in float64": 1.0})

    monkeypatch.setattr(Child, "judge", slow)
    monkeypatch.setattr(sys.modules["simengine.fuzz.fuzz"], "_OVERTIME", 1.0)
    start = time.monotonic()
    report = fuzz(seconds=1, seed=1, corpus=tmp_path)
    assert time.monotonic() - start < 4
    assert allowed
    assert max(allowed) <= 2
    assert len(report.findings) == len(list(tmp_path.iterdir())) == 1


@pytest.mark.slow
def test_an_attempt_that_takes_longer_than_it_may_hangs_without_a_second_try() -> None:
    with Child("host", ("float64",), 2, limit=60) as child:
        start = time.monotonic()
        assert child.judge(PENDULUM, 0, within=0.5).kind == "hangs"
        assert time.monotonic() - start < 5
        assert child.judge(PENDULUM, 0).kind == "agrees"


def _compiles(text: str) -> bool:
    try:
        mujoco.MjModel.from_xml_string(text)
    except ValueError:
        return False
    return True


def test_a_wrong_field_is_a_finding_and_its_file_repeats_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison runs in this process, on an engine whose results are changed."""
    from simengine.simulation import Simulation

    forward = Simulation.forward

    def wrong(sim: Simulation) -> None:
        sim.set_state(qvel=sim.qvel + 0.1)
        forward(sim)

    monkeypatch.setattr(Simulation, "forward", wrong)
    outcome = judge(PENDULUM, backend="host", dtypes=("float64",), states=4, seed=0)
    assert outcome.kind == "differs"
    assert any(field.startswith("cvel") for field in outcome.fields)
    path = save(tmp_path, PENDULUM, 3, "simengine fuzz --seed 5", outcome)
    assert read(path).seed == 3
    mujoco.MjModel.from_xml_path(str(path))


@pytest.mark.parametrize(("kind", "outcome"), [("raises", "undecided"), ("crashes", "undecided"), ("agrees", "raises")])
def test_a_failure_is_a_finding_unless_mujoco_fails_alone(
    kind: str, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(_: Child, text: str, seed: int, within: float | None = None, alone: bool = False) -> Outcome:
        return Outcome(kind if alone else "raises", ["FatalError in step of states.py"])

    monkeypatch.setattr(Child, "_judge", answer)
    with Child("host", ("float64",), 2, limit=60) as child:
        assert child.judge(PENDULUM, 0).kind == outcome


@pytest.mark.slow
def test_a_model_on_which_mujoco_itself_fails_is_undecided() -> None:
    """MuJoCo 4.0 finds four contacts of a capsule and a cylinder, where its table says two, and ends the process."""
    text = """
    <mujoco><worldbody><geom size="20 20 0.12" type="capsule"/><body><geom size="0.05 0.2"/><body pos="0 0 -0.2">
    <joint axis="0 -1 0"/><geom pos="0 0 -0.23" size="0.05 0.23" type="cylinder"/></body></body></worldbody></mujoco>
    """
    with Child("host", ("float32",), 300, limit=60) as child:
        outcome = child.judge(text, 2)
        assert outcome.kind == "undecided", outcome
        assert "MuJoCo itself fails" in outcome.reasons[0]
        assert child.judge(PENDULUM, 0).kind == "agrees"


def test_jobs_share_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {2, 3, 5, 7, 8})
    assert _shared(1) == [[]], "a single job may use all"
    assert _shared(2) == [[2, 5, 8], [3, 7]]
    assert _shared(7) == [[2], [3], [5], [7], [8], [2], [3]]


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs to choose processors")
def test_a_child_keeps_to_its_processors() -> None:
    one = min(os.sched_getaffinity(0))
    with Child("host", ("float64",), 2, limit=60, processors=[one]) as child:
        child._start()
        assert child._process is not None
        assert os.sched_getaffinity(child._process.pid) == {one}


@pytest.mark.slow
def test_a_child_that_crashes_or_hangs_is_an_outcome_and_is_replaced() -> None:
    with Child("host", ("float64",), 2, limit=60) as child:
        assert child.judge(PENDULUM, 0).kind == "agrees"
        assert child._process is not None
        os.kill(child._process.pid, signal.SIGSEGV)
        time.sleep(0.2)
        crashed = child.judge(PENDULUM, 0)
        assert (crashed.kind, crashed.is_finding) == ("crashes", True)
        assert "SIGSEGV" in crashed.reasons[0]
        assert child.judge(PENDULUM, 0).kind == "agrees"
        os.kill(child._process.pid, signal.SIGSTOP)
        child._limit = 0.01
        assert child.judge(PENDULUM, 0).kind == "hangs"
        child._limit = 60
        os.kill(child._start().pid, signal.SIGSTOP)
        child._limit = 3
        assert child.judge(PENDULUM, 0).kind == "agrees", "the second try of a new process"
        child._limit = 60
        assert child.judge(PENDULUM, 0) == Outcome(**child.judge(PENDULUM, 0).as_dict())


def test_the_command_and_its_exit_codes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The models are those of a corpus, and this process judges them: others would need kernels of their own."""
    found = judge(PENDULUM, backend="host", dtypes=("float64",), states=4, seed=0)
    monkeypatch.setattr(Child, "judge", lambda *_: found)
    monkeypatch.setattr(sys.modules[fuzz.__module__], "_drawn", lambda *_: itertools.repeat(("drawn", PENDULUM)))
    corpus = ["--corpus", str(tmp_path)]
    assert main(["fuzz", "--models", "2", *corpus, "--json", "-"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["passed"]
    assert (result["drawn"], result["states"]) == (2, 2 * found.states)
    assert not list(tmp_path.iterdir())
    assert main(["fuzz", "nowhere.xml"]) == 2
    file = tmp_path / "model.xml"
    file.write_text(PENDULUM)
    assert main(["fuzz", str(file), "--dtype", "float64", "--states", "4"]) == 0
    with pytest.raises(SystemExit, match="2"):
        main(["fuzz", "--models", "0"])
    file.unlink()
    wrong = Outcome("differs", ["qacc is off by 2"], states=1, fields={"qacc in float64": 2.0})
    monkeypatch.setattr(Child, "judge", lambda *_: wrong)
    assert main(["fuzz", "--models", "1", *corpus]) == 1
    (kept,) = tmp_path.iterdir()
    capsys.readouterr()
    assert main(["fuzz", str(kept), "--json", "-"]) == 1
    assert not json.loads(capsys.readouterr().out)["passed"]


def test_a_run_without_an_end_is_refused() -> None:
    with pytest.raises(ValueError, match="never end"):
        fuzz()
