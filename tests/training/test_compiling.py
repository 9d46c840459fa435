"""Programs for a GPU are compiled with options that XLA may not know; others with none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
import pytest

from simengine_training.compiling import compiled

GPU: Any = SimpleNamespace(platform="gpu")
CPU: Any = SimpleNamespace(platform="cpu")


class Lowered:
    """A lowered program whose compilation with options fails with an error, if one is given."""

    def __init__(self, error: str = ""):
        self.error, self.seen = error, list[Any]()

    def compile(self, compiler_options: Any = None) -> str:
        self.seen.append(compiler_options)
        if compiler_options and self.error:
            raise jax.errors.JaxRuntimeError(self.error)
        return "program"


def test_options_are_for_gpus() -> None:
    on_gpu, on_cpu = Lowered(), Lowered()
    assert compiled(on_gpu, GPU) == compiled(on_cpu, CPU) == "program"
    assert len(on_gpu.seen) == 1
    assert on_gpu.seen[0]
    assert on_cpu.seen == [None]


def test_a_compiler_that_does_not_know_the_options_goes_without() -> None:
    lowered = Lowered("INVALID_ARGUMENT: No such compile option: 'xla_gpu_enable_triton_gemm'")
    assert compiled(lowered, GPU) == "program"
    assert lowered.seen[1:] == [None]


def test_other_errors_are_told() -> None:
    lowered = Lowered("RESOURCE_EXHAUSTED: out of memory")
    with pytest.raises(jax.errors.JaxRuntimeError, match="out of memory"):
        compiled(lowered, GPU)
    assert len(lowered.seen) == 1
