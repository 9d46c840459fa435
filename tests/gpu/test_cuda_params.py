"""Parameters that differ from world to world, on the GPU."""

from __future__ import annotations

import pytest

from tests.gpu.compare import cuda_only
from tests.helpers.params import errors


@cuda_only
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-9), ("float32", 2e-3)])
@pytest.mark.parametrize("name", ["ant", "tendons", "glider", "heap"])
def test_results_are_those_of_compiled_models(backend: str, name: str, dtype: str, tolerance: float) -> None:
    assert max(errors(name, dtype, backend)) < tolerance
