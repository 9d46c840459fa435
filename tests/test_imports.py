"""Import rules that import-linter cannot say, and that every module imports at all."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

import simengine
from tests.checkout import ROOT, SOURCES

PACKAGES = {path.parent.name: path.parent for source in SOURCES for path in source.glob("simengine*/__init__.py")}
PHYSICS = ROOT / "simengine" / "physics"
JAX_FORMS = sorted(PHYSICS.rglob("*_jax.py"))
DECLARATIONS_THAT_JAX_NEEDS = ("simengine.physics.stage", "simengine.physics.collision.narrowphase")


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
            module = node.module or ""
            is_room = within(module, "simengine.physics") and (ROOT / module.replace(".", "/")).is_dir()
            yield from (f"{module}.{alias.name}" for alias in node.names) if is_room else (module,)


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


@pytest.mark.parametrize("name", list(modules()))
def test_module_imports(name: str) -> None:
    importlib.import_module(name)


def test_jax_forms_are_found() -> None:
    assert len(JAX_FORMS) >= 80


@pytest.mark.parametrize("path", JAX_FORMS, ids=lambda path: path.stem)
def test_jax_form_imports_jax_forms_only(path: Path) -> None:
    for module in imported(path):
        own = within(module, "simengine.physics")
        allowed = own or within(module, "jax") or within(module, "numpy")
        assert allowed or module.split(".")[0] in sys.stdlib_module_names, f"{path.name} imports {module}"
        assert not own or module.endswith("_jax") or module in DECLARATIONS_THAT_JAX_NEEDS, (
            f"{path.name} imports {module}, neither a JAX form nor a declaration"
        )


def test_names_of_physics_files_are_unique() -> None:
    names = [path.name for pattern in ("*.cu", "*.cuh", "*.py") for path in PHYSICS.rglob(pattern)]
    twice = {name for name in names if names.count(name) > 1} - {"__init__.py"}
    assert not twice, f"kernels name their parts by file name alone, and {sorted(twice)} stand in several rooms"


@pytest.mark.parametrize("name", simengine.__all__)
def test_no_module_hides_a_public_name(name: str) -> None:
    """An imported submodule becomes an attribute of its package, where it would take the place of what has its name."""
    assert importlib.util.find_spec(f"simengine.{name}") is None


@pytest.mark.parametrize("heavy", ["cupy", "matplotlib", "flax", "optax"])
def test_importing_the_engine_leaves_out(heavy: str) -> None:
    code = f"import sys, simengine, simengine_scheduler; sys.exit({heavy!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize("package", ["simengine", "simengine_envs", "simengine_training", "simengine_configs"])
def test_no_modules_import_one_another(package: str) -> None:
    """Contracts speak of rooms; a cycle of modules is one within a room, or through the face of a package, too."""
    graph = grimp.build_graph(package)
    sorter = TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules})
    sorter.prepare()
