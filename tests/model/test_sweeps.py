"""The orders of the sweeps of projected Gauss-Seidel in the model table."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simengine import load_model
from simengine.model.sweeps import MOST_ROWS, MOST_SWEEPS
from simengine.physics.math import random_jax as pcg


def order_of(table: np.ndarray, sweep: int, n: int) -> list[int]:
    return list(table.view(np.uint8)[sweep, n * (n - 1) // 2 : n * (n + 1) // 2].tolist())


@pytest.mark.parametrize("n", [1, 2, 3, 31, 32, 33, 77, 96])
def test_orders_are_those_that_sweeps_draw(n: int) -> None:
    table = load_model("humanoid").table.sweep_order
    shuffle = jax.jit(pcg.shuffle)
    order, state = jnp.arange(n), pcg.first_state()
    for sweep in range(6):
        order, state = shuffle(order, jnp.int32(0), jnp.int32(n), state)
        assert order_of(table, sweep, n) == order.tolist()


def test_every_order_has_every_row_once() -> None:
    table = load_model("humanoid").table
    assert table.sweep_order.dtype == np.int32
    assert table.nsweep == table.opt_iterations <= MOST_SWEEPS
    orders = [order_of(table.sweep_order, sweep, n) for sweep in range(table.nsweep) for n in (5, MOST_ROWS)]
    assert all(sorted(order) == list(range(len(order))) for order in orders)


def test_other_solvers_and_fewer_rows_have_smaller_tables() -> None:
    assert load_model("ant").table.sweep_order.size == 0
    pendulum = """<mujoco><option solver="PGS" iterations="7"/><worldbody><body><geom size=".1"/>
      <joint type="hinge" axis="0 1 0" limited="true" range="-1 1"/></body></worldbody></mujoco>"""
    assert load_model(pendulum).table.sweep_order.shape == (7, 1)
