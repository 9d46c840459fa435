"""Ids of environments in commands: which modules register them, what is refused, and what is a model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from simengine.cli.environments.ids import environment_id, is_environment
from simengine.cli.main import main
from simengine.cli.options.errors import UsageError
from tests.cli import own_task
from tests.cli.refusals import assert_refused
from tests.helpers.checkout import PYTHONPATH

COMMANDS = (["run", "--worlds", "2", "--steps", "2"], ["view", "--worlds", "2", "--no-browser"], ["train"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with own_task.in_folder(tmp_path, monkeypatch) as found:
        yield found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("simengine/Ant-v5", True),
        ("simengine/Ant", True),
        ("Balance-v0", True),
        ("mypackage.tasks:Balance-v0", True),
        ("mypackage:mine/Balance-v0", True),
        ("ant", False),
        ("simengine/zoo/ant.xml", False),
        ("models/robot-v2.xml", False),
        ("<mujoco model='a-v1'/>", False),
    ],
)
def test_ids_and_models_are_told_apart(text: str, expected: bool) -> None:
    assert is_environment(text) == expected


def test_a_file_is_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert is_environment("robot-v2")
    Path("robot-v2").write_text("<mujoco/>", encoding="utf-8")
    assert not is_environment("robot-v2")


@pytest.mark.usefixtures("folder")
def test_modules_are_found_in_the_current_folder() -> None:
    with pytest.raises(UsageError, match="there is no environment 'Upright-v0'.* add --import MODULE"):
        environment_id("Upright-v0")
    assert environment_id(f"{own_task.MODULE}:Upright-v0") == "Upright-v0"
    assert environment_id("Upright-v0") == "Upright-v0"


@pytest.mark.usefixtures("folder")
def test_an_imported_module_registers_its_ids() -> None:
    assert environment_id("Upright-v0", [own_task.MODULE]) == "Upright-v0"
    with pytest.raises(UsageError, match=r"no environment 'Uprigt-v0' \(did you mean 'Upright-v0'"):
        environment_id("Uprigt-v0")


def test_ids_of_gymnasium_are_for_some_commands_only() -> None:
    with pytest.raises(UsageError, match=r"no environment 'Ant-v5' \(did you mean 'simengine/Ant-v5'"):
        environment_id("Ant-v5")
    assert environment_id("Pendulum-v1", any_kind=True) == "Pendulum-v1"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["simengine/Ants-v5"], "no environment 'simengine/Ants-v5' (did you mean 'simengine/Ant-v5'?)"),
        (["no_such_module:Task-v0"], "module 'no_such_module' cannot be imported (ModuleNotFoundError: No module"),
        (["simengine/Ant-v5", "--import", "broken"], "module 'broken' cannot be imported (RuntimeError: not today)"),
    ],
)
def test_wrong_ids_and_modules_are_refused(
    command: list[str], more: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "broken.py").write_text("raise RuntimeError('not\\ntoday')", encoding="utf-8")
    assert_refused([command[0], *more, *command[1:]], message, capsys)


def test_the_current_folder_is_searched_as_by_python_m(folder: Path) -> None:
    """In a process whose program lies elsewhere, as that of the installed command does."""
    program = "import sys; from simengine.cli.main import main; sys.exit(main(sys.argv[1:]))"
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "simengine.py").write_text(program, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH, "PYTHONSAFEPATH": "1"}
    call = ["run", f"{own_task.MODULE}:Upright-v0", "--worlds", "2", "--steps", "3", "--json"]
    done = subprocess.run(
        [sys.executable, str(folder / "elsewhere" / "simengine.py"), *call],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["environment"] == "Upright-v0"


@pytest.mark.usefixtures("folder")
def test_own_tasks_are_trained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("optax")
    small = ["--num-envs", "4", "--rollout-steps", "8", "--total-steps", "64", "--eval-episodes", "0"]
    out = ["--out", str(tmp_path / "out"), "--backend", "host", "--json"]
    assert main(["train", "Upright-v0", "--import", own_task.MODULE, *small, *out]) == 0
    arguments = json.loads(capsys.readouterr().out)["trainings"][0]["arguments"]
    assert (arguments["env_id"], arguments["env_arguments"]) == ("Upright-v0", {"backend": "host"})
