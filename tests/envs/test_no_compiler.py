"""Without a C++ compiler environments step in JAX, with arrays of every kind, and an error says what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simengine.errors import BackendError
from simengine_envs import make_pure
from simengine_scheduler.native import compiling

NAME = "simengine/InvertedPendulum-v5"
WORDS = r"no C\+\+ compiler .*; install one, set CXX, or use backend='jax'"


@pytest.fixture(autouse=True)
def _no_compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    compiling.compiler.cache_clear()
    monkeypatch.setattr(compiling.shutil, "which", lambda name: None)
    monkeypatch.setattr("simengine_envs.options._compiled", {})
    with jax.enable_x64(False):
        yield
    compiling.compiler.cache_clear()


def test_arrays_of_every_kind_remain() -> None:
    seen = []
    for kind in ("numpy", "jax"):
        env: Any = gymnasium.make_vec(NAME, num_envs=3, array=kind)
        assert env.unwrapped.runner.backend == "jax"
        env.reset(seed=0)
        action = np.full((3, 1), 0.5, np.float32)
        observation, reward, *_ = env.step(jnp.asarray(action) if kind == "jax" else action)
        assert isinstance(observation, jax.Array if kind == "jax" else np.ndarray)
        seen.append(np.concatenate([observation, reward[:, None]], axis=1))
    np.testing.assert_array_equal(*seen)


@pytest.mark.slow
def test_programs_run_on_the_backend_that_needs_none() -> None:
    env = make_pure(NAME)
    state, _ = env.reset(0, 2)
    state, result = jax.jit(lambda s: jax.lax.scan(env.step, s, jnp.zeros((3, 2, 1))))(state)
    assert result.reward.tolist() == [[1.0, 1.0]] * 3


@pytest.mark.parametrize(
    "make",
    [
        lambda: gymnasium.make_vec(NAME, num_envs=2, backend="host", array="jax"),
        lambda: make_pure(NAME, backend="host"),
    ],
)
def test_the_backend_that_needs_one_says_so(make: Any) -> None:
    with pytest.raises(BackendError, match=WORDS) as caught:
        make()
    assert "\n" not in str(caught.value)
