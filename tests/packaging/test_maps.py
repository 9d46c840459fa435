"""Packages say in their docstrings which modules they have. All of these exist, and no benchmark is left out."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.helpers.checkout import ROOT, SOURCES

PHYSICS = ROOT / "simengine" / "physics"
PACKAGES = sorted({path.parent for source in SOURCES for path in source.glob("simengine*/**/__init__.py")})
LISTED = re.compile(r"^    ([a-z_]\w*(?:, \w+)*)(?: {2,}|$)", re.MULTILINE)


def docstring(package: Path) -> str:
    return ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""


def modules(package: Path) -> set[str]:
    """Stems of a package's files and folders; for topics of the physics, also stages of other topics."""
    found = {path.stem for path in (PHYSICS.rglob("*") if PHYSICS in package.parents else package.iterdir())}
    return found | {stem.removesuffix("_jax") for stem in found}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_listed_modules_exist(package: Path) -> None:
    listed = {name for line in LISTED.findall(docstring(package)) for name in line.split(", ")}
    assert not listed - modules(package)


def test_every_benchmark_is_in_the_list() -> None:
    folder = ROOT / "benchmarks"
    programs = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    assert programs - {"__init__"} == set(re.findall(r"`(\w+)`", docstring(folder)))
