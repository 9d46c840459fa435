"""Fixtures that the tests of the environments share."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import simengine_envs


@pytest.fixture(autouse=True)
def _registered() -> None:
    simengine_envs.register_envs()


@pytest.fixture(autouse=True)
def _jax_on_the_gpu(request: pytest.FixtureRequest) -> None:
    """Environments of backend cuda need JAX on the GPU, which other tests keep on the CPU: JAX_PLATFORMS=cuda,cpu."""
    if request.node.get_closest_marker("gpu") and jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU here")


@pytest.fixture
def same() -> Any:
    """A function that asserts that two results of an environment are equal: bits, dtypes and keys."""
    return assert_same


def assert_same(actual: Any, expected: Any, where: str = "result") -> None:
    """Raise AssertionError, which names the differing part, unless the two are equal bit for bit."""
    assert type(actual) is type(expected), f"{where}: {type(actual)} is not {type(expected)}"
    if isinstance(expected, dict):
        assert actual.keys() == expected.keys(), f"{where}: keys {sorted(actual)} are not {sorted(expected)}"
        for key in expected:
            assert_same(actual[key], expected[key], f"{where}[{key!r}]")
    elif isinstance(expected, (tuple, list)):
        assert len(actual) == len(expected), f"{where}: {len(actual)} entries are not {len(expected)}"
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            assert_same(a, e, f"{where}[{i}]")
    elif isinstance(expected, np.ndarray) and expected.dtype == object:
        assert_same(list(actual), list(expected), where)
    elif isinstance(expected, np.ndarray):
        assert actual.dtype == expected.dtype, f"{where}: dtype {actual.dtype} is not {expected.dtype}"
        np.testing.assert_array_equal(actual, expected, err_msg=where)
    else:
        assert actual == expected, f"{where}: {actual} is not {expected}"
