"""Rows of a few worlds are found, taken and put back with the same bits by calls on a CPU and by XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from simengine.xla import host_calls
from simengine_envs import PureEnv
from simengine_envs.lanes.values import NotInLanes
from simengine_envs.rows import first_rows, put_rows, repeated, take_rows
from simengine_envs.sums import sum_of_arrays
from simengine_envs.tasks.inverted_pendulum import InvertedPendulum
from simengine_envs.written import written_for

FORMS = pytest.mark.parametrize("backend", ["host", "jax"])


def numbers(rows: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(rows, 3)).astype(np.float32)


@pytest.mark.skipif(not host_calls.calls_exist(), reason="needs a C++ compiler")
@pytest.mark.parametrize("worlds", [1, 64, 256])
def test_starts_of_episodes_put_rows_by_one_call(monkeypatch: pytest.MonkeyPatch, worlds: int) -> None:
    """Where a step is no chain."""

    def refused(*_: Any) -> None:
        raise NotInLanes

    monkeypatch.setattr("simengine_envs.rounding.in_chain", refused)
    with jax.enable_x64(False):
        env = PureEnv(InvertedPendulum(), "host", max_episode_steps=10)
        state = jax.eval_shape(env.reset, np.arange(worlds, dtype=np.uint32))[0]
        text = str(jax.make_jaxpr(env.step)(state, jax.ShapeDtypeStruct((worlds, 1), "float32")))
    assert text.count(f"target_name={host_calls.PUT_ROWS}") == 1
    assert "scatter" not in text


@FORMS
@pytest.mark.parametrize(("chosen", "most"), [((), 3), ((4,), 3), ((0, 2, 3, 5), 3), ((0, 1, 2), 3)])
def test_first_rows(backend: str, chosen: tuple[int, ...], most: int) -> None:
    mask = np.isin(np.arange(6), chosen)
    with written_for(backend):
        found, left = jax.jit(first_rows, static_argnums=1)(mask, most)
    few = chosen[:most]
    np.testing.assert_array_equal(found, [*few, *[6] * (most - len(few))])
    np.testing.assert_array_equal(left, mask & ~np.isin(np.arange(6), few))


@FORMS
def test_rows_are_taken_and_put(backend: str) -> None:
    tree: dict[str, Any] = {"x": numbers(6), "mask": np.arange(6) > 2, "keys": jax.random.split(jax.random.key(0), 6)}
    chosen = np.array([4, 1, 6], np.int32)
    with written_for(backend):
        taken = jax.jit(take_rows)(tree, chosen)
        changed = {"x": taken["x"] + 1, "mask": ~taken["mask"], "keys": taken["keys"]}
        put = jax.jit(put_rows)(tree, chosen, changed)
    np.testing.assert_array_equal(taken["x"][:2], tree["x"][[4, 1]])
    expected: dict[str, Any] = {"x": tree["x"].copy(), "mask": tree["mask"].copy()}
    expected["x"][[4, 1]] += 1
    expected["mask"][[4, 1]] ^= True
    np.testing.assert_array_equal(put["x"], expected["x"])
    np.testing.assert_array_equal(put["mask"], expected["mask"])
    np.testing.assert_array_equal(jax.random.key_data(put["keys"]), jax.random.key_data(tree["keys"]))


@pytest.mark.skipif(not host_calls.calls_exist(), reason="needs a C++ compiler")
def test_rows_under_vmap() -> None:
    x, chosen = numbers(6).reshape(2, 3, 3), np.array([[0, 3], [2, 1]], np.int32)
    mapped: Callable[..., Any] = jax.vmap(lambda x, c: put_rows(x, c, take_rows(x, c) * 0))
    with written_for("host"):
        found = np.asarray(mapped(x, chosen))
    expected = x.copy()
    expected[0, 0] = expected[1, [2, 1]] = 0
    np.testing.assert_array_equal(found, expected)


@FORMS
def test_one_row_is_repeated(backend: str) -> None:
    row: dict[str, Any] = {"x": numbers(1), "mask": np.array([True]), "count": np.array([[3, 4]], np.int32)}
    with written_for(backend):
        found = jax.jit(repeated, static_argnums=1)(row, 5)
    for name, value in row.items():
        assert found[name].dtype == value.dtype
        np.testing.assert_array_equal(found[name], np.repeat(value, 5, axis=0))


@FORMS
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arrays_are_added_in_order(backend: str, dtype: str) -> None:
    terms = [np.asarray([3.0, -0.0, np.nan], dtype) * np.asarray(scale, dtype) for scale in (1e8, 1.0, 1e-8)]
    with jax.enable_x64(dtype == "float64"), written_for(backend):
        found = jax.jit(sum_of_arrays)(terms)
    assert found.dtype == dtype
    expected = (terms[0] + terms[1]) + terms[2]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found[:2]), np.signbit(expected[:2]))
