"""Cold trainings until MuJoCo agrees, with a program in the place of the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import cold_training

# Three evaluations, of which the first and the third leave a best policy.
TRAIN = """
import os, sys, time
from pathlib import Path
out = Path(sys.argv[sys.argv.index("--out") + 1])
out.mkdir(parents=True)
assert not any(Path(os.environ[name]).exists() for name in ("SIMENGINE_CACHE_DIR", "CUPY_CACHE_DIR"))
assert "JAX_COMPILATION_CACHE_DIR" not in os.environ
rows = "update,env_steps,return_mean,return_std\\n"
for update, found in enumerate((10.0, 5.0, 30.0), 1):
    rows += f"{update},{update * 100},{found},1.0\\n"
    (out / "evaluations.csv").write_text(rows)
    if found != 5.0:
        (out / "part").write_text(str(found))
        (out / "part").replace(out / "policy.npz")
    time.sleep(0.2)
(out / "curve.csv").write_text("update,env_steps\\n1,100\\n3,300\\n")
(out / "times.csv").write_text("update,evaluation,seconds\\n1,0,1.0\\n3,0,2.0\\n")
print("update 3/3")
"""
# In MuJoCo a policy is worth two less.
EVALUATE = """
import json, sys
print(json.dumps({"mujoco": {"return_mean": float(open(sys.argv[2]).read()) - 2, "return_std": 0.0}}))
"""


@pytest.fixture(autouse=True)
def _programs(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(*words: str) -> list[str]:
        return [sys.executable, "-c", {"train": TRAIN, "evaluate": EVALUATE}[words[0]], *words]

    monkeypatch.setattr(cold_training, "program", program)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "somewhere")


def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[int, dict[str, Any]]:
    """The exit code of the benchmark and its only row."""
    file = tmp_path / "found.json"
    monkeypatch.setattr(sys, "argv", ["cold_training", *words, "--json", str(file)])
    code = cold_training.main()
    (row,) = json.loads(file.read_text(encoding="utf-8"))["rows"]
    return code, row


def test_a_target_is_reached_where_mujoco_agrees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, row = measured(tmp_path, monkeypatch, "ant=8,9,29", "--logs", str(tmp_path / "logs"))
    assert code == 1
    first, second, third = row["reached"]
    assert (first["env_steps"], first["mujoco"]["return_mean"]) == (100, 8.0)
    assert (second["env_steps"], second["mujoco"]["return_mean"]) == (300, 28.0)
    assert 0 < first["seconds"] < second["seconds"] < row["whole_s"]
    assert third == {"target": 29.0}
    assert [kept[0] for kept in row["kept"]] == [100, 300]
    assert second["simengine"]["return_mean"] == 30.0
    assert row["steps_per_s"] == 200
    assert (tmp_path / "logs" / "ant_0.log").read_text() == "update 3/3\n"
    assert "not reached" in capsys.readouterr().out


def test_a_training_may_end_at_its_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, row = measured(tmp_path, monkeypatch, "reacher=-100,-30", "--stop", "--set", "gamma=0.9")
    assert code == 0
    assert row["settings"] == ["gamma=0.9", "target_return=-29.7"]


def test_a_training_without_target_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["cold_training", "ant"])
    with pytest.raises(SystemExit, match="2"):
        cold_training.main()
