"""The compiled issuer on streams that are threads, under sanitizers, which find a missing wait as a race."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from simengine_scheduler.native import issuer
from simengine_scheduler.native.compiling import build
from simengine_scheduler.native.issuer import OF_ISSUER

FOLDER = Path(issuer.__file__).parent
PROGRAM = Path(__file__).parent / "native" / "issue_on_threads.cpp"
OF_PIECES = ("pieces.h", "learning.h", "apart.h", "held.h")
HEADERS = (*OF_ISSUER, *OF_PIECES, "programs.h")
SOURCES = [PROGRAM, *(FOLDER / name for name in HEADERS)]


def run(*options: str, programs: int) -> str:
    path = build("issue_on_threads", SOURCES, [f"-I{FOLDER}", *options])
    answer = subprocess.run([path, str(programs), "7"], capture_output=True, text=True, check=False, timeout=300)
    assert answer.returncode == 0, answer.stdout + answer.stderr[:4000]
    return answer.stdout


def test_results_are_those_of_program_order() -> None:
    assert run(programs=10) == "10\n"


@pytest.mark.sanitizer
@pytest.mark.parametrize("kind", ["thread", "address,undefined"])
def test_no_sanitizer_has_an_objection(kind: str) -> None:
    options = (f"-fsanitize={kind}", "-fno-sanitize-recover=all", "-O1", "-g")
    assert run(*options, programs=300) == "300\n"
