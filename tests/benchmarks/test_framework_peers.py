"""The work of `benchmarks.framework_peers` is that of the list `products`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from benchmarks import framework_peers
from benchmarks.framework_peers import BANDS, CHAINS, LENGTH, SIZE, Way, forms, matrices
from simengine_scheduler.study.workloads import HostTarget, make_network


def test_forms_are_those_of_the_list() -> None:
    network = make_network("products", HostTarget())
    for due in forms(20):
        calls = [list(emitter) for emitter in network.emitters()]
        assert [1 + BANDS * number for _, number in due] == [len(own) for own in calls]


def reference(steps: int) -> np.ndarray:
    first, factors = matrices()
    xs = np.zeros((CHAINS, LENGTH + 1, SIZE, SIZE), np.float32)
    xs[:, 0] = first
    for due in forms(steps):
        for chain, number in due:
            x = xs[chain]
            x[0] = 0.9 * (1 - 1.9 * x[0] * x[0]) + 0.1 * x[LENGTH]
            for k in range(number):
                own = factors[chain, k]
                banded = (x[k].reshape(BANDS, -1, SIZE) @ own).reshape(SIZE, SIZE)
                x[k + 1] = np.clip(own[0] @ x[k] if k % 2 else banded, -1, 1)
    return xs[:, 0]


def in_torch() -> Way:
    pytest.importorskip("torch")
    return framework_peers.in_torch(False, "cpu")


@pytest.mark.parametrize("make", [in_torch, partial(framework_peers.in_jax, "cpu")], ids=["torch", "jax"])
def test_frameworks_do_the_same_work(make: Callable[[], Way]) -> None:
    step, found = make()
    for due in forms(3):
        step(due)
    np.testing.assert_allclose(found(), reference(3), atol=1e-4)
