"""Compiling kernels: for the host, with clear errors, and for CUDA without a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from simengine.errors import BackendError
from simengine.kernels import host_build
from simengine.kernels.cuda_build import build_kernel, compile_cubin, compile_ptx
from simengine.kernels.kernel import Kernel
from simengine.plan import catalogue, check_cuda, contact_kernels
from simengine.plan.stages import FACTOR_M, GUARD, PASSIVE
from simengine.plan.tiles import INERTIA
from simengine_scheduler.native import compiling


@pytest.fixture
def fresh_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Forget the compiler that was found, before and after the test; kernels are cached in a folder of their own."""
    monkeypatch.setenv("SIMENGINE_CACHE_DIR", str(tmp_path / "kernels"))
    compiling.compiler.cache_clear()
    yield tmp_path
    compiling.compiler.cache_clear()


def test_no_compiler_is_one_clear_sentence(fresh_compiler: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(fresh_compiler / "nothing"))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(BackendError, match=r"no C\+\+ compiler .* set CXX, or use backend='jax'$") as caught:
        host_build.build_kernel(catalogue.single(PASSIVE), "float32")
    assert "\n" not in str(caught.value)


def test_a_compiler_that_fails_is_named(fresh_compiler: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = fresh_compiler / "fake"
    fake.write_text("#!/bin/sh\n[ \"$1\" = --version ] && echo fake 1.0 && exit 0\necho 'x: error: no' >&2; exit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("CXX", str(fake))
    with pytest.raises(BackendError, match="fake could not compile kernel only_passive: x: error: no") as caught:
        host_build.build_kernel(catalogue.single(PASSIVE), "float32")
    assert "\n" not in str(caught.value)
    assert not list((fresh_compiler / "kernels").iterdir())


@pytest.mark.parametrize("left", ["", 'for last; do :; done; : > "$last";'])
def test_a_compiler_that_writes_no_library_is_named(
    fresh_compiler: Path, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    fake = fresh_compiler / "fake"
    fake.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo fake 1.0 && exit 0\n{left} exit 0\n')
    fake.chmod(0o755)
    monkeypatch.setenv("CXX", str(fake))
    with pytest.raises(BackendError, match="fake wrote no library for kernel only_passive; try another") as caught:
        host_build.build_kernel(catalogue.single(PASSIVE), "float32")
    assert "\n" not in str(caught.value)
    assert not list((fresh_compiler / "kernels").iterdir())


def test_builds_differ_in_precision_lanes_and_flags(fresh_compiler: Path) -> None:
    kernel = catalogue.single(FACTOR_M)
    plain = host_build.build_kernel(kernel, "float32")
    assert host_build.build_kernel(kernel, "float32") == plain
    others = [
        host_build.build_kernel(kernel, "float64"),
        host_build.build_kernel(kernel, "float32", lanes=4),
        host_build.build_kernel(kernel, "float32", extra_flags=("-DUNUSED",)),
    ]
    assert len({plain, *others}) == 4


def test_worlds_with_tables_of_their_own_have_a_build_of_tiled_kernels_alone(fresh_compiler: Path) -> None:
    for kernel, same in ((INERTIA, False), (catalogue.single(FACTOR_M), True)):
        shared, own = (host_build.build_kernel(kernel, "float32", own_tables=each) for each in (False, True))
        assert (shared == own) is same


def test_a_cache_that_machines_share_keeps_builds_of_other_processors_apart(
    fresh_compiler: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = catalogue.single(FACTOR_M)
    here = host_build.build_kernel(kernel, "float32")
    monkeypatch.setattr(host_build, "cpu_features", lambda: "flags : sse sse2")
    assert host_build.build_kernel(kernel, "float32") != here


def need_nvrtc() -> None:
    """Skip where CuPy's NVRTC is not installed."""
    try:
        from cupy.cuda import nvrtc
    except ImportError as error:
        pytest.skip(f"CuPy's NVRTC is not installed: {error}")
    assert nvrtc.getVersion() >= (12, 0)


NVRTC_KERNELS = (
    catalogue.POSITION,
    catalogue.SMOOTH,
    contact_kernels.SCAN_KERNEL,
    catalogue.finish("rk4", "solve_newton_unilateral", False),
)


@pytest.mark.parametrize("arch", [80, 90, 100])
@pytest.mark.parametrize("kernel", NVRTC_KERNELS, ids=lambda k: k.name)
def test_kernels_compile_for_cuda_without_a_gpu(kernel: Kernel, arch: int) -> None:
    need_nvrtc()
    lanes = 1024 if kernel.unit == "column" else 16
    cubin = compile_cubin(kernel, "float32", lanes, arch, ("--Ofast-compile=max",))
    assert cubin.startswith(b"\x7fELF")
    assert kernel.name.encode() in cubin


@pytest.mark.parametrize("body", [" { return 2 * a; }", ";"])
def test_a_function_without_a_body_is_found_before_the_assembler(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    need_nvrtc()
    source = f'__device__ int twice(int a){body} extern "C" __global__ void doubled(int* x) {{ *x = twice(*x); }}'
    monkeypatch.setattr("simengine.kernels.cuda_build.kernel_source", lambda kernel, target: source)
    expected = pytest.raises(BackendError, match="kernel only_passive for sm_90 calls .*twice.*, which has no body")
    with expected if body == ";" else nullcontext():
        assert ".visible .entry doubled" in compile_ptx(catalogue.single(PASSIVE), "float32", 16, 90)


@pytest.mark.slow  # the first stage compiles each kernel to PTX, and some to machine code in a test above
def test_every_kernel_is_assembled(capsys: pytest.CaptureFixture[str]) -> None:
    need_nvrtc()
    assert check_cuda.main(["--once", "--quick"]) == 0, capsys.readouterr().err


def test_cuda_errors_name_the_kernel_and_the_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    need_nvrtc()
    monkeypatch.setattr("simengine.kernels.cuda_build.kernel_source", lambda kernel, target: "int broken(")
    with pytest.raises(BackendError, match="NVRTC could not compile kernel only_passive for sm_90: .*error"):
        compile_cubin(catalogue.single(PASSIVE), "float32", 16, 90)


def test_flags_of_the_environment_are_added_and_tell_builds_apart(
    fresh_compiler: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = catalogue.single(GUARD)
    monkeypatch.delenv("CXXFLAGS", raising=False)
    plain = host_build.build_kernel(kernel, "float32")
    monkeypatch.setenv("CXXFLAGS", "-O1 -DNOTHING")
    assert host_build.build_kernel(kernel, "float32") != plain
    monkeypatch.setenv("CXXFLAGS", "-no-such-flag")
    with pytest.raises(BackendError, match="no-such-flag"):
        host_build.build_kernel(kernel, "float32")


def test_lines_of_the_sources_are_in_machine_code_where_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_nvrtc()
    kernel = catalogue.single(GUARD)
    monkeypatch.setenv("SIMENGINE_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("NVRTCFLAGS", raising=False)
    plain = build_kernel(kernel, "float32", 16, 90).read_bytes()
    monkeypatch.setenv("NVRTCFLAGS", "-lineinfo")
    assert b".debug_line" not in plain
    assert b".debug_line" in build_kernel(kernel, "float32", 16, 90).read_bytes()
