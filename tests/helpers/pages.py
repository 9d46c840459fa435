"""Markdown pages, and their code blocks as programs and commands that run as a reader would run them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from simengine.cli.main import main
from tests.helpers.checkout import PYTHONPATH, ROOT

DOCS = ROOT / "docs"


def text_of(page: Path) -> str:
    """The text of a page."""
    return page.read_text(encoding="utf-8")


def blocks(page: Path, language: str) -> list[str]:
    """The contents of all code blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text_of(page), flags=re.MULTILINE | re.DOTALL)


def program(page: Path, *languages: str) -> str:
    """Blocks in the given languages as one program. Each block has the line numbers that it has on the page."""
    text = text_of(page)
    lines = [""] * (text.count("\n") + 1)
    for block in re.finditer(rf"^```({'|'.join(languages)})\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
        first, body = text.count("\n", 0, block.start(2)), block[2].splitlines()
        lines[first : first + len(body)] = body
    return "\n".join(lines)


def commands(page: Path) -> list[str]:
    """Commands in `console` blocks: the lines that start with a prompt."""
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    return [line[2:].partition("  #")[0].strip() for line in lines if line.startswith("$ ")]


def run_in_shell(command: str, folder: Path, timeout: float) -> None:
    """Run a command with this environment's programs first on the path. If it fails, the test fails with its output."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": PYTHONPATH}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def run_command(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run commands `simengine ...`, joined by `&&`, in this process, which has imported what they need."""
    monkeypatch.chdir(folder)
    for part in command.split("&&"):
        program, *words = shlex.split(part)
        assert program == "simengine", f"{program} is not run here"
        assert main(words) == 0, part


def run_program(source: str, folder: Path, timeout: float = 300) -> None:
    """Run a Python program. Warnings that are meant for users count as failures."""
    file = folder / "program.py"
    file.write_text(source, encoding="utf-8")
    run_in_shell(f"python -W error::UserWarning {file}", folder, timeout)


def without_opengl() -> str:
    """Why MuJoCo cannot render off screen; empty if it can. It uses EGL unless MUJOCO_GL is set.

    The attempt runs in a separate process, because a failed one leaves incomplete contexts behind.
    """
    os.environ.setdefault("MUJOCO_GL", "egl")
    probe = "import mujoco; mujoco.Renderer(mujoco.MjModel.from_xml_string('<mujoco/>')).render()"
    failed = subprocess.run([sys.executable, "-c", probe], capture_output=True, check=False).returncode
    return f"MuJoCo opens no off-screen OpenGL context with MUJOCO_GL={os.environ['MUJOCO_GL']}" if failed else ""


def missing_links(page: Path) -> list[str]:
    """Targets of links to files that do not exist."""
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text_of(page))
    return [target for target in targets if not (page.parent / target).exists()]


def missing_paths(page: Path) -> list[str]:
    """Paths in backticks that the repository does not have. A path has a slash or a suffix that the project uses."""
    paths = re.findall(r"`([\w./-]+)`", text_of(page))
    ours = (
        path
        for path in paths
        if path.endswith((".py", ".cu", ".cuh", ".yaml", ".md", ".json")) or path.partition("/")[0] in _FOLDERS
    )
    placeholders = re.compile(r"(NAME|YOURS)|^simengine/[A-Z]")  # the last are ids of environments
    return [path for path in ours if "/" in path and not placeholders.search(path) and not (ROOT / path).exists()]


_FOLDERS = {path.name for path in ROOT.iterdir() if path.is_dir()}
