"""An installed simengine works beside user files that have the names of the repository's folders."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.helpers.checkout import ROOT, SOURCES

USER_PROGRAM = Path(__file__).with_name("user_program.py")
NAMES = ("scheduler", "envs", "training", "configs")
MARK = "raise ImportError('a file of the user was imported by simengine')\n"


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=300)


def passed(answer: subprocess.CompletedProcess[str]) -> str:
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder)
    passed(run(sys.executable, "-m", "pip", "wheel", *options, ROOT, cwd=folder))
    (built,) = folder.glob("simengine-*.whl")
    return built


@pytest.fixture(scope="module", params=[pytest.param("editable", marks=pytest.mark.slow), "wheel"])
def python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter in an environment with nothing of ours but that installation."""
    folder = tmp_path_factory.mktemp(request.param)
    passed(run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder))
    interpreter = folder / "bin" / "python"
    # the libraries that the tests run with; .pth files there, such as that of an editable install, count for nothing
    site = passed(run(interpreter, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder))
    Path(site.strip(), "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    what = ("--editable", ROOT) if request.param == "editable" else (request.getfixturevalue("wheel"),)
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--ignore-installed")
    passed(run(sys.executable, "-m", "pip", "--python", interpreter, "install", *options, *what, cwd=folder))
    return interpreter


@pytest.fixture(params=["files", "packages", "folders"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A user's project that has files, packages or folders of those names; importing any of them fails."""
    for name in NAMES:
        if request.param == "files":
            (tmp_path / f"{name}.py").write_text(MARK)
        else:
            (tmp_path / name).mkdir()
            marked = "__init__.py" if request.param == "packages" else "own.py"
            (tmp_path / name / marked).write_text(MARK)
    shutil.copy(USER_PROGRAM, tmp_path / "program.py")
    return tmp_path


def test_program_runs_beside_files_of_the_user(python: Path, project: Path) -> None:
    assert passed(run(python, "program.py", cwd=project)).endswith("ran\n")


def test_command_line_runs_beside_files_of_the_user(python: Path, project: Path) -> None:
    assert "ant" in passed(run(python.with_name("simengine"), "info", "ant", cwd=project))
    assert "ant" in passed(run(python, "-m", "simengine.cli.main", "info", "ant", cwd=project))


@pytest.mark.slow
def test_mypy_strict_of_the_program(python: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    shutil.copy(USER_PROGRAM, tmp_path / "program.py")
    cache = tmp_path_factory.getbasetemp() / "mypy_cache"  # of the libraries, which both environments share
    mypy = (sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "--cache-dir", cache)
    passed(run(*mypy, "program.py", cwd=tmp_path))


@pytest.mark.parametrize("name", NAMES)
def test_folders_are_no_modules(python: Path, tmp_path: Path, name: str) -> None:
    """A folder of the repository is at most an empty namespace: nothing of ours is importable under its name."""
    code = f"import importlib.util as u; s = u.find_spec({name!r}); print(s is None or s.origin is None)"
    assert passed(run(python, "-c", code, cwd=tmp_path)) == "True\n"


def test_wheel_holds_every_source(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    packages = [path.parent for source in SOURCES for path in source.glob("simengine*/__init__.py")]
    assert len(packages) == 5
    for package in packages:
        files = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        missing = {str(path.relative_to(package.parent)) for path in files} - held
        assert not missing, f"the wheel lacks {sorted(missing)}"
        assert f"{package.name}/py.typed" in held
    assert {name.partition("/")[0] for name in held if ".dist-info" not in name} == {p.name for p in packages}
