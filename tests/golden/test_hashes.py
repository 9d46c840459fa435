"""Golden hashes on the host: all executors and splits of a case give one hash, and it is the committed one."""

from __future__ import annotations

import platform
from functools import cache

import mujoco
import numpy as np
import pytest

from tests.golden import environment, hashes, play
from tests.golden.cases import CASES, WORLDS
from tests.golden.play import Outcome

DTYPES = ("float32", "float64")
SPLIT = ("ant, RK4", "linkage, noslip, equalities", "tables, found pairs", "five models, some pause")

IN_DOUBLE = (*SPLIT, "dual, PGS, elliptic")
"""Cases that run in double precision each time; the others do in the second stage."""

each = pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(name, dtype, marks=() if dtype == "float32" or name in IN_DOUBLE else pytest.mark.slow)
        for name in CASES
        for dtype in DTYPES
    ],
)


@cache
def serial(name: str, dtype: str) -> Outcome:
    return play.play(CASES[name], "host", "serial", dtype)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, "float32") for name in CASES] + [pytest.param(name, "float64", marks=pytest.mark.slow) for name in CASES],
)
def test_every_executor_gives_one_hash(name: str, dtype: str) -> None:
    for executor in ("threads", "shuffled"):
        assert play.play(CASES[name], "host", executor, dtype).hash == serial(name, dtype).hash, executor


@each
def test_the_hash_is_the_committed_one(name: str, dtype: str) -> None:
    hashes.assert_committed(environment.key("host", dtype), name, serial(name, dtype).hash)


@each
def test_the_worlds_move_apart_and_touch_what_the_case_says(name: str, dtype: str) -> None:
    play.assert_moves(serial(name, dtype), CASES[name])


@pytest.mark.parametrize("name", SPLIT)
def test_no_hash_depends_on_the_shards(name: str) -> None:
    for executor, shards in (("threads", 3), ("shuffled", WORLDS)):
        found = play.play(CASES[name], "host", executor, "float32", shards)
        assert found.hash == serial(name, "float32").hash, f"{executor}, {shards} shards"


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the flags are those of x86-64")
@pytest.mark.parametrize("flags", ["-mno-avx512f", "-mno-avx512f -mno-avx2 -mno-avx"])
@pytest.mark.parametrize("name", ["dual, PGS, elliptic", "linkage, noslip, equalities"])
def test_no_hash_depends_on_the_width_of_vectors(name: str, flags: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows take a multiple of four words, and a vector may have two, four, eight or sixteen."""
    wide = serial(name, "float64").hash
    monkeypatch.setenv("CXXFLAGS", f"-Og {flags}")
    assert play.play(CASES[name], "host", "serial", "float64").hash == wide


def test_the_cases_use_every_part_of_the_physics() -> None:
    compiled = [source() for case in CASES.values() for source in case.sources]
    options = [mj.opt for mj in compiled]
    integrator, cone, solver = mujoco.mjtIntegrator, mujoco.mjtCone, mujoco.mjtSolver
    explicit = (integrator.mjINT_EULER, integrator.mjINT_RK4)
    integrators = (*explicit, integrator.mjINT_IMPLICIT, integrator.mjINT_IMPLICITFAST)
    assert {opt.integrator for opt in options} == set(map(int, integrators))
    assert {opt.cone for opt in options} == {int(cone.mjCONE_PYRAMIDAL), int(cone.mjCONE_ELLIPTIC)}
    assert {opt.solver for opt in options} == {int(solver.mjSOL_NEWTON), int(solver.mjSOL_CG), int(solver.mjSOL_PGS)}
    assert any(opt.noslip_iterations for opt in options)
    assert any(opt.density for opt in options)
    for count in ("nmocap", "nhfield", "nmesh", "ntendon", "na", "nsensor", "neq"):
        assert any(getattr(mj, count) for mj in compiled), count
    assert any((mj.actuator_gaintype == mujoco.mjtGain.mjGAIN_MUSCLE).any() for mj in compiled)
    assert any(mj.ntree > 10 and mj.nv > 64 for mj in compiled)
    assert any(mj.ngeom > 70 for mj in compiled)
    assert any(len(case.sources) > 2 and case.pauses for case in CASES.values())
    assert any(case.params for case in CASES.values())


# On arm64 atan2f and asinf of glibc round differently, which limits of ball joints and tendons around geoms call, and
# so does NumPy, which derives what follows from parameters of worlds.
BY_LIBRARIES = {
    ("aarch64", "float32"): {"ragdoll, implicit, mocap", "ropes, spatial tendons"},
    ("aarch64", "float64"): {"hopper, parameters", "stacks, RK4, parameters"},
}


@pytest.mark.parametrize("dtype", DTYPES)
def test_compilers_and_processors_give_the_same_bits(dtype: str) -> None:
    """From the same compiled models: MuJoCo compiles them to other numbers on other processors."""
    rows = {key: known for key, known in hashes.read().items() if key.startswith("host") and key.endswith(dtype)}
    first = next(known for key, known in rows.items() if ", g++ " in key and "x86_64 avx512f" in key)
    others = [key for key in rows if rows[key] is not first and ", glibc 2.36, " in key and "MuJoCo 4.0.0" in key]
    assert any("clang++" in key for key in others)
    assert any("aarch64" in key and "models of x86_64" in key for key in others)
    for key in others:
        machine = next((machine for machine, of in BY_LIBRARIES if f" {machine}," in key and of == dtype), "")
        differing = {name for name, found in rows[key].items() if found != first[name]}
        assert differing == BY_LIBRARIES.get((machine, dtype), set()) & set(rows[key]), key


def test_no_two_cases_have_one_hash_and_no_hash_is_of_no_case() -> None:
    for key, known in hashes.read().items():
        assert len(set(known.values())) == len(known), key
        assert set(known) <= set(CASES), key


def test_a_hash_tells_neighbouring_numbers_apart() -> None:
    ones = np.ones(5)
    other = ones.copy()
    other[3] = np.nextafter(1.0, 2.0)
    assert play.hash_of([ones]) != play.hash_of([other])
    assert play.hash_of([ones, ones]) == play.hash_of([np.ones(5), np.ones(5)])
