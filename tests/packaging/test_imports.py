"""Import rules that import-linter cannot express, and a check that every module can be imported."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import simengine
from tests.helpers.checkout import ROOT, SOURCES

PACKAGES = {path.parent.name: path.parent for source in SOURCES for path in source.glob("simengine*/__init__.py")}
LIBRARIES = {
    "simengine_envs.adapters.brax": "brax",
    "simengine_envs.adapters.rsl_rl": "rsl_rl",
    "simengine_envs.adapters.stable_baselines3": "stable_baselines3",
    "simengine_training.onnx_export": "onnx",
    "simengine_training.ray_cluster": "ray",
}
"""Libraries that single modules need, and that most installations lack."""

PHYSICS = ROOT / "simengine" / "physics"
JAX_FORMS = sorted(PHYSICS.rglob("*_jax.py"))
WITHOUT_CYCLES = tuple(PACKAGES)
DECLARATIONS_THAT_JAX_NEEDS = ("simengine.physics.stage", "simengine.physics.collision.narrowphase")


def modules(package: str) -> Iterator[str]:
    yield package
    yield from (found.name for found in pkgutil.walk_packages([str(PACKAGES[package])], prefix=f"{package}."))


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


def can_be_imported(library: str) -> bool:
    try:
        importlib.import_module(library)
    except ImportError:
        return False
    return True


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the training libraries
def test_every_module_can_be_imported(package: str) -> None:
    failed = []
    for name in modules(package):
        try:
            importlib.import_module(name)
        except ImportError as error:
            if name not in LIBRARIES or can_be_imported(LIBRARIES[name]):
                failed.append(f"{name}: {error}")
    assert not failed


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


def test_importing_the_engine_leaves_out_heavy_libraries() -> None:
    heavy = {"cupy", "gymnasium", "jax", "matplotlib", "optax"}
    code = f"import sys, simengine, simengine_scheduler; print({heavy} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout == "set()\n"


def test_environments_are_registered_after_a_look_for_gymnasium() -> None:
    """Names of models are looked for among Gymnasium's, which does not import it."""
    code = (
        "import simengine; simengine.load_model('ant'); import gymnasium; print(gymnasium.spec('simengine/Ant-v5').id)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "simengine/Ant-v5\n"


@pytest.mark.parametrize(
    "packages", ["simengine", "gymnasium, simengine", "simengine, simengine_envs", "simengine_envs, simengine"]
)
def test_environments_are_registered_whatever_is_imported_first(packages: str) -> None:
    code = f"import {packages}; import gymnasium; print(gymnasium.spec('simengine/Ant-v5').id)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "simengine/Ant-v5\n"


@pytest.mark.parametrize("package", WITHOUT_CYCLES)
def test_no_modules_import_each_other(package: str) -> None:
    """Imports within functions and for type checkers count, and so do those from the package itself."""
    grimp = pytest.importorskip("grimp", reason="it comes with import-linter")
    graph = grimp.build_graph(package, cache_dir=None)
    try:
        TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules}).prepare()
    except CycleError as error:
        pytest.fail(" is imported by ".join(error.args[1]))


def test_the_scheduler_runs_without_what_only_others_need() -> None:
    """A first program loads none of these packages, and no folder of the scheduler for studies or services."""
    program = """
import sys

ABSENT = ("cuda", "cupy", "gymnasium", "jax", "matplotlib", "mujoco", "simengine")
sys.modules.update(dict.fromkeys(ABSENT))  # an import of these raises ImportError

import simengine_scheduler as s

x = (segments := s.Segments()).intern("x")
ran = []
call = s.KernelCall("append", s.PythonLaunch(lambda: ran.append(1)), (), (x,))
with s.make_executor("threads", segments=segments, record="order") as executor:
    trace = executor.run([[call, call]])
assert ran == [1, 1] and s.validate(trace.order, trace, segments) == []
rooms = {name.split(".")[1] for name in sys.modules if name.startswith("simengine_scheduler.")}
assert rooms.isdisjoint({"gpu_model", "service", "study", "testing"}), rooms
"""
    subprocess.run([sys.executable, "-c", program], cwd=ROOT / "scheduler", check=True)
