"""Which contact of MuJoCo is which of the engine's."""

from __future__ import annotations

import numpy as np

from simengine.check.order import contact_order


def test_contacts_are_the_nearest_of_their_pair() -> None:
    geoms = np.array([[0, 1], [0, 1], [0, 1], [0, 2]])
    own = np.array([[0.0], [1.0], [2.0], [3.0]])
    other = np.array([[2.1], [0.1], [1.1], [0.0]])
    assert contact_order(geoms, own, other).tolist() == [1, 2, 0, 3]


def test_copies_of_contacts_keep_their_order() -> None:
    """Explicit pairs of the same geoms have copies, with other friction, and rounding makes one the nearest."""
    geoms, rng = np.array(12 * [[0, 1]]), np.random.default_rng(0)
    points = np.tile([[0.0], [0.5], [0.5 + 3e-12], [0.7]], (3, 1))
    noisy = points + 1e-15 * rng.normal(size=points.shape)
    assert contact_order(geoms, points, noisy).tolist() == list(range(12))
    swapped = noisy[[1, 0, 2, 3, 5, 4, 6, 7, 8, 9, 10, 11]]
    assert contact_order(geoms, points, swapped).tolist() == [1, 0, 2, 3, 5, 4, 6, 7, 8, 9, 10, 11]


def test_copies_that_mujoco_searches_for_twice_keep_their_order() -> None:
    """Its searches of two explicit pairs with other margins end a micrometre apart."""
    geoms, points = np.array(4 * [[0, 1]]), np.array([[0.0], [0.5], [0.0], [0.5]])
    other = points + np.array([[3e-6], [0.0], [1e-6], [0.0]])
    assert contact_order(geoms, points, other).tolist() == [0, 1, 2, 3]
    apart = np.array([[0.0], [0.5], [1e-6], [0.7]])
    assert contact_order(geoms, apart, apart[[2, 1, 0, 3]]).tolist() == [2, 1, 0, 3]
