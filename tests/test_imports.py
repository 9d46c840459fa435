"""Import rules that import-linter cannot say, and that every module imports at all."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import simengine
from tests.checkout import ROOT, SOURCES

PACKAGES = {path.parent.name: path.parent for source in SOURCES for path in source.glob("simengine*/__init__.py")}
REFS = sorted((ROOT / "simengine" / "stages").glob("*_ref.py"))
REF_MAY_IMPORT = ("jax", "numpy", "simengine.math", "simengine.stages")


def modules() -> Iterator[str]:
    for package, folder in PACKAGES.items():
        yield package
        yield from (found.name for found in pkgutil.walk_packages([str(folder)], prefix=f"{package}."))


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            yield node.module or ""


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


@pytest.mark.parametrize("name", list(modules()))
def test_module_imports(name: str) -> None:
    importlib.import_module(name)


def test_reference_stages_are_found() -> None:
    assert len(REFS) >= 15


@pytest.mark.parametrize("path", REFS, ids=lambda path: path.stem)
def test_reference_stage_imports_maths_only(path: Path) -> None:
    for module in imported(path):
        allowed = any(within(module, package) for package in REF_MAY_IMPORT)
        assert allowed or module.split(".")[0] in sys.stdlib_module_names, f"{path.name} imports {module}"
        if within(module, "simengine.stages"):
            assert module.endswith(("_ref", ".narrowphase", ".stage")), (
                f"{path.name} imports {module}, neither a JAX form nor a declaration"
            )


@pytest.mark.parametrize("name", simengine.__all__)
def test_no_module_hides_a_public_name(name: str) -> None:
    """An imported submodule becomes an attribute of its package, where it would take the place of what has its name."""
    assert importlib.util.find_spec(f"simengine.{name}") is None


@pytest.mark.parametrize("heavy", ["cupy", "matplotlib", "flax", "optax"])
def test_importing_the_engine_leaves_out(heavy: str) -> None:
    code = f"import sys, simengine, simengine_scheduler; sys.exit({heavy!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
