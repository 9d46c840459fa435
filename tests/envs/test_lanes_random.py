"""Random programs of the operations that a chain takes have the bits of XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simengine.xla import host_calls
from simengine_envs.lanes.values import NotInLanes
from tests.envs.test_lanes import WORLDS, assert_same_bits, by_xla, in_call, single_precision  # noqa: F401

pytestmark = [
    pytest.mark.skipif(not host_calls.calls_exist(), reason="needs a C++ compiler"),
    pytest.mark.usefixtures("single_precision"),
]
LENGTH = 30  # operations of a program
QUICK, ALL = 2, 40  # programs
REALS = np.array(
    [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2147483648, -2147483648, 2147483520, 3e9, -3e9, 3e38, 0.1,
     0.5, -0.5, 1.5, 2.5, 1e-20, 16777217, np.pi, -100, 88.8, -104],
    np.float32,
)  # fmt: skip
WHOLE = np.array([0, 1, -1, 2**31 - 1, -(2**31), 31, 32, 33, 255, 16777217, -7], np.int64)

Value = Any
Make = Callable[..., Value]
F, V, I, U, B = "real", "vector", "int", "uint", "bool"
OPERATIONS: list[tuple[Make, tuple[str, ...], str]] = [
    *[
        (make, (kind, kind), kind)
        for make in (jnp.add, jnp.subtract, jnp.multiply, jnp.maximum, jnp.minimum)
        for kind in (F, V, I, U)
    ],
    *[
        (make, (kind, kind), B)
        for make in (jnp.less, jnp.less_equal, jnp.greater, jnp.greater_equal, jnp.equal, jnp.not_equal)
        for kind in (F, I, U)
    ],
    *[(make, (kind,), kind) for make in (jnp.negative, jnp.abs, jnp.square) for kind in (F, V)],
    *[(make, (F,), F) for make in (jnp.floor, jnp.ceil, jnp.exp, jnp.sin, jnp.cos, jnp.sqrt)],
    (jnp.divide, (F, F), F),
    (jnp.divide, (V, V), V),
    (lambda x: x**3, (F,), F),
    (lambda x: x / 3, (F,), F),
    (lambda x: 3 / x, (F,), F),
    (lambda v, x: v / x[:, None], (V, F), V),
    (lambda v, x: v * x[:, None], (V, F), V),
    (lambda x: x + 0.0, (F,), F),
    (lambda x: x - 0.0, (F,), F),
    (lambda x: 0.0 - x, (F,), F),
    (lambda x: x * 0.0, (F,), F),
    (lambda x: x * 1.0, (F,), F),
    (lambda x: x * -1.0, (F,), F),
    (lambda v: v * np.float32([1, 0, -2]), (V,), V),
    (lambda v: v + np.float32([0, -0.0, 1]), (V,), V),
    (lambda x: jnp.clip(x, -0.5, 0.5), (F,), F),
    (lambda x, y: jnp.clip(x, y, 1.0), (F, F), F),
    (lambda i: jnp.clip(i, -3, 7), (I,), I),
    (lambda m, x, y: jnp.where(m, x, y), (B, F, F), F),
    (lambda m, x, y: jnp.where(m, x, y), (B, I, I), I),
    (lambda m, x: jnp.where(m[:, None], x, 0.0), (B, V), V),
    (lambda m, n, o: jnp.where(m, n, o), (B, B, B), B),
    (lambda x, m: x * m, (F, B), F),
    (lambda v, m: v * m[:, None], (V, B), V),
    (lambda x, m: m * x, (F, B), F),
    (lambda i, m: i * m, (I, B), I),
    (lambda m, n: m.astype(jnp.float32) * n.astype(jnp.float32), (B, B), F),
    (lambda m: 1.0 - m.astype(jnp.float32), (B,), F),
    (jnp.isfinite, (F,), B),
    (jnp.isnan, (F,), B),
    (lambda v: jnp.isfinite(v).all(axis=1), (V,), B),
    (jnp.logical_and, (B, B), B),
    (jnp.logical_or, (B, B), B),
    (jnp.logical_xor, (B, B), B),
    (jnp.logical_not, (B,), B),
    (lambda i: i << 3, (I,), I),
    (lambda u: u >> 9, (U,), U),
    (lambda u, w: jax.lax.shift_right_logical(u, w), (U, U), U),
    (lambda u, w: jax.lax.shift_left(u, w), (U, U), U),
    (lambda i: jax.lax.shift_right_logical(i, jnp.int32(5)), (I,), I),
    (lambda i: i & 255, (I,), I),
    (lambda i, j: i ^ j, (I, I), I),
    (lambda u, w: u | w, (U, U), U),
    (lambda i: ~i, (I,), I),
    (lambda i: -i, (I,), I),
    (lambda i: i.astype(jnp.float32), (I,), F),
    (lambda u: u.astype(jnp.float32), (U,), F),
    (lambda x: x.astype(jnp.int32), (F,), I),
    (lambda i: i.astype(jnp.uint32), (I,), U),
    (lambda u: u.astype(jnp.int32), (U,), I),
    (lambda i: i.astype(bool), (I,), B),
    (lambda x: x.astype(bool), (F,), B),
    (lambda m: m.astype(jnp.int32), (B,), I),
    (lambda v: v.sum(axis=1), (V,), F),
    (lambda v: v.mean(axis=1), (V,), F),
    (lambda v: v.max(axis=1), (V,), F),
    (lambda v: v.min(axis=1), (V,), F),
    (lambda v: jnp.linalg.norm(v, axis=1), (V,), F),
    (lambda v: (v > 0).any(axis=1), (V,), B),
    (lambda v, w: (v * w).sum(axis=1), (V, V), F),
    (lambda x, y, z: jnp.stack([x, y, z], axis=1), (F, F, F), V),
    (lambda v, x: jnp.concatenate([v[:, 1:], x[:, None]], axis=1), (V, F), V),
    (lambda v: v[:, ::-1], (V,), V),
    (lambda v: v[:, np.array([2, 0, 0])], (V,), V),
    (lambda v: v[:, np.array([2, -1, 1])], (V,), V),
    (lambda v: v[:, 1], (V,), F),
    (lambda v, x: v.at[:, 1].set(x), (V, F), V),
    (lambda v, x: v.at[:, 2].add(x), (V, F), V),
    (lambda x: jnp.broadcast_to(x[:, None], (len(x), 3)), (F,), V),
    (lambda x: jnp.tile(x[:, None], 3), (F,), V),
    (lambda x, y: jnp.hypot(x, y), (F, F), F),
]


def program(seed: int) -> Callable[..., list[Value]]:
    """A program of random operations, each on inputs or results of earlier ones."""
    generator = np.random.default_rng(seed)
    chosen = [(OPERATIONS[k], generator.random(3)) for k in generator.integers(0, len(OPERATIONS), LENGTH)]

    def run(x: Value, y: Value, v: Value, w: Value, i: Value, u: Value, m: Value) -> list[Value]:
        known: dict[str, list[Value]] = {F: [x, y], V: [v, w], I: [i], U: [u], B: [m]}
        for (make, kinds, kind), draws in chosen:
            given = [known[own][int(draw * len(known[own]))] for own, draw in zip(kinds, draws, strict=False)]
            known[kind].append(make(*given))
        return [value for values in known.values() for value in values[1:]]

    return run


def inputs(seed: int) -> list[np.ndarray]:
    """Numbers of all sizes, among them special ones."""
    generator = np.random.default_rng(1000 + seed)

    def reals(*shape: int) -> np.ndarray:
        common = generator.normal(size=shape) * 10.0 ** generator.integers(-3, 4, shape)
        return np.where(generator.random(shape) < 0.4, generator.choice(REALS, shape), common).astype(np.float32)

    whole = generator.choice(WHOLE, WORLDS)
    signed, unsigned = whole.astype(np.int32), generator.permutation(whole).astype(np.uint32)
    return [*(reals(WORLDS, *rest) for rest in ((), (), (3,), (3,))), signed, unsigned, generator.random(WORLDS) < 0.4]


@pytest.mark.parametrize("seed", [pytest.param(k, marks=[pytest.mark.slow] * (k >= QUICK)) for k in range(ALL)])
def test_random_programs_have_the_bits_of_xla(seed: int) -> None:
    """Or they are left to XLA, as quotients by square roots are."""
    given, made = inputs(seed), program(seed)
    try:
        found = in_call(made, *given)
    except NotInLanes:
        return
    assert_same_bits(found, by_xla(made, *given))
