"""Models drawn at random, against MuJoCo: every field of a few states, and a few steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import mujoco
import pytest

from simengine.fuzz.generate import generate
from simengine.fuzz.judge import judge


@pytest.fixture(scope="module", autouse=True)
def _silence() -> Iterator[None]:
    """MuJoCo does not print what it warns of."""
    mujoco.set_mju_user_warning(lambda _: None)
    yield
    mujoco.set_mju_user_warning(None)


def compare(first: int, number: int, backend: str, dtype: str) -> None:
    """Draw models and compare each; most must be worth it."""
    count: Counter[str] = Counter()
    for seed in range(first, first + number):
        text = generate(seed)
        outcome = judge(text, backend=backend, dtypes=(dtype,), states=4, seed=seed % 4)
        assert not outcome.is_finding, "\n".join((f"model of seed {seed}", *outcome.reasons, text))
        count[outcome.kind] += 1
    assert count["agrees"] > 0.7 * number, count


@pytest.mark.parametrize("dtype", [pytest.param("float64", marks=pytest.mark.slow), "float32"])
def test_generated_models_agree_with_mujoco(dtype: str) -> None:
    compare(0, 20 if dtype == "float64" else 8, "host", dtype)


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "number"), [("float64", 150), ("float32", 50)])
def test_many_generated_models_agree_with_mujoco(dtype: str, number: int) -> None:
    compare(100, number, "host", dtype)


@pytest.mark.slow
def test_the_jax_forms_of_generated_models_agree_with_mujoco() -> None:
    compare(0, 3, "jax", "float64")
