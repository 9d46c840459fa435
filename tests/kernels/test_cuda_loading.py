"""What a process loads on a GPU: each kernel once for a number of lanes. The driver is a stand-in here."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from simengine.kernels import cuda_build
from simengine.kernels.functions import Build
from simengine.kernels.kernel import Kernel
from simengine.kernels.step_kernel import STEP_KERNELS
from simengine.plan.catalogue import POSITION
from simengine.plan.contact_kernels import SCAN_KERNEL

cupy = pytest.importorskip("cupy")


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[bytes]:
    """The files that are loaded as modules, each with the name of its kernel, the dtype and the lanes."""
    found: list[bytes] = []

    class Module:
        def load(self, code: bytes) -> None:
            found.append(code)

        def get_function(self, name: str) -> SimpleNamespace:
            return SimpleNamespace(ptr=len(found), name=name)

    def built(kernel: Kernel, source: str, dtype: str, lanes: int, arch: int) -> Path:
        path = tmp_path / f"{kernel.name}-{dtype}-{lanes}-{arch}"
        path.write_text(f"{kernel.name} {dtype} {lanes}")
        return path

    monkeypatch.setenv("SIMENGINE_CACHE_DIR", str(tmp_path))  # with others, a kernel is loaded again
    monkeypatch.setattr(cuda_build, "_built", built)
    monkeypatch.setattr(cupy.cuda, "Device", lambda: SimpleNamespace(compute_capability="90", id=0))
    monkeypatch.setattr(cupy.cuda.function, "Module", Module)
    return found


def test_a_kernel_is_loaded_once_for_each_number_of_lanes(loaded: list[bytes]) -> None:
    builds = [Build(POSITION, 8), Build(SCAN_KERNEL, 8), Build(POSITION, 32), Build(SCAN_KERNEL, 32)]
    functions = cuda_build.load_kernels(builds, "float32")
    assert sorted(loaded) == [b"position float32 32", b"position float32 8", b"scan float32 1024"]
    assert functions[1] is functions[3], "a scan has lanes of its own"
    assert [function.function.name for function in functions] == ["position", "scan", "position", "scan"]
    assert functions[0].ptr != functions[2].ptr
    assert cuda_build.load_kernels(builds, "float32") == functions
    assert len(loaded) == 3
    cuda_build.load_kernels(builds[:1], "float64")
    assert loaded[3:] == [b"position float64 8"]


def test_workers_have_no_body_of_a_kernel_of_whole_steps(loaded: list[bytes]) -> None:
    whole, other = cuda_build.load_kernels([Build(STEP_KERNELS[0], 16), Build(POSITION, 16)], "float32")
    assert whole.body is None
    assert other.body is not None
