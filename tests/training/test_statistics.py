"""Running statistics against NumPy over everything at once."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine_training.statistics import LIMIT, Statistics


def after(batches: list[np.ndarray], shape: tuple[int, ...] = ()) -> Statistics:
    """Statistics of batches, one after the other."""
    statistics = Statistics.empty(shape)
    for batch in batches:
        statistics = statistics.updated(jnp.asarray(batch, jnp.float32))
    return statistics


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), sizes=st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_batches_add_up(seed: int, sizes: list[int]) -> None:
    rng = np.random.default_rng(seed)
    batches = [rng.normal(loc=rng.normal(scale=5), scale=rng.uniform(0, 3), size=(n, 2, 3)) for n in sizes]
    statistics = after(batches, (3,))
    everything = np.concatenate(batches).reshape(-1, 3)
    assert statistics.number == len(everything)
    np.testing.assert_allclose(statistics.mean, everything.mean(axis=0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(statistics.var, everything.var(axis=0), rtol=1e-3, atol=1e-4)


def test_a_billion_entries_still_count() -> None:
    """Float32 counts in steps of a rollout, which is a multiple of a power of two."""
    statistics = Statistics.empty()._replace(number=jnp.float32(1e9 // 65536 * 65536))
    more = statistics.updated(jnp.ones(65536, jnp.float32))
    assert float(more.number) == 1e9 // 65536 * 65536 + 65536
    assert float(more.mean) > 0


def test_scalars() -> None:
    statistics = after([np.array([[1.0, 2.0], [3.0, 6.0]])])
    assert (statistics.number, statistics.mean, statistics.var) == (4, 3.0, 3.5)
    np.testing.assert_allclose(statistics.scaled(jnp.array([7.0, -7.0])), np.array([7.0, -7.0]) / np.sqrt(3.5))


def test_normalised_data_has_mean_0_and_deviation_1() -> None:
    data = np.random.default_rng(0).normal(loc=[5, -300], scale=[1e-2, 40], size=(5000, 2))
    normalized = after([data], (2,)).normalized(jnp.asarray(data, jnp.float32))
    assert normalized.dtype == np.float32
    np.testing.assert_allclose(normalized.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(normalized.std(axis=0), 1, atol=2e-3)


def test_nothing_seen_changes_nothing_and_the_limit_holds() -> None:
    values = jnp.array([0.5, -2.0, 100.0, -100.0])
    for changed in (Statistics.empty().normalized(values), Statistics.empty().scaled(values)):
        np.testing.assert_allclose(changed, [0.5, -2.0, LIMIT, -LIMIT], rtol=1e-6)


def test_a_constant_entry_stays_finite() -> None:
    statistics = after([np.full((10, 1), 3.0)], (1,))
    assert statistics.normalized(jnp.full((1, 1), 3.0)) == 0
    assert np.isfinite(statistics.normalized(jnp.full((1, 1), 4.0))).all()
