"""A kernel that writes where no memory is: every executor says so in one sentence, and in order it names the call."""

from __future__ import annotations

import pytest

from benchmarks.faults import gpu
from tests.gpu.compare import cuda_only


@cuda_only
@pytest.mark.parametrize("how", gpu.HOW)
def test_a_fault_is_told_in_one_sentence(backend: str, how: str) -> None:
    told, error = gpu.told_of_a_write(how)
    assert told["fatal"], told["said"] or error
    assert "a CUDA fault ended the context and was noticed at call" in told["said"]
    assert told["call"] in told["said"]
    assert told["said"].count(". ") == 0
