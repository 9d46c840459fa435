"""Random numbers of environments are those of JAX's own generator, whatever is drawn, and in every form."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simengine_envs.draw import Draw, Purpose, keys_of, of_episodes
from simengine_envs.sums import sum_of_last
from simengine_envs.threefry import fused
from simengine_envs.written import written_for

DRAWS: dict[str, Callable[[Any], Any]] = {
    "fold_in": lambda key: jax.random.key_data(jax.random.fold_in(key, 5)),
    "fold_in of a negative number": lambda key: jax.random.key_data(jax.random.fold_in(key, jnp.int32(-5))),
    "split": lambda key: jax.random.key_data(jax.random.split(key, 3)),
    "uniform": lambda key: jax.random.uniform(key, (3, 4)),
    "uniform, no entries": lambda key: jax.random.uniform(key, (0,)),
    "normal": lambda key: jax.random.normal(key, ()),
    "randint": lambda key: jax.random.randint(key, (7,), -3, 12),
    "bits": lambda key: jax.random.bits(key, (5,), jnp.uint8),
    "permutation": lambda key: jax.random.permutation(key, 9),
}


@pytest.mark.parametrize("double", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("backend", ["jax", "host"])
@pytest.mark.parametrize("name", DRAWS)
def test_other_forms_give_the_numbers_of_jax(name: str, backend: str, double: bool) -> None:
    """Operations that XLA fuses, and custom calls; five keys share the vectors of a call."""
    with jax.enable_x64(double):
        keys = jax.vmap(jax.random.key)(jnp.asarray([0, 1, 7, 2**31, 2**32 - 1], jnp.uint32))
        with written_for(backend):
            own = fused(keys)
        assert ("called" in str(own.dtype)) == (backend == "host")
        expected, found = (jax.jit(jax.vmap(DRAWS[name]))(given) for given in (keys, own))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_calls_draw_under_every_transformation() -> None:
    with written_for("host"):
        keys = fused(keys_of(jnp.arange(6, dtype=jnp.uint32)))

    def drawn(key: jax.Array) -> jax.Array:
        return jax.random.uniform(jax.random.fold_in(key, 3), (4,))

    expected = jnp.stack([drawn(key) for key in keys])
    np.testing.assert_array_equal(jax.vmap(jax.vmap(drawn))(keys.reshape(2, 3)).reshape(6, 4), expected)
    np.testing.assert_array_equal(jax.lax.map(jax.jit(drawn), keys), expected)


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 32, 33, 78, 129])
def test_sums_have_the_same_bits_in_every_form(count: int, double: bool) -> None:
    with jax.enable_x64(double):
        values = jnp.asarray(np.random.default_rng(count).normal(size=(2, 3, count)))
        with written_for("host"):
            found = [sum_of_last(values), jax.jit(jax.vmap(sum_of_last))(values)]
        for one in found:
            np.testing.assert_array_equal(one, sum_of_last(values))


def test_keys_of_other_generators_stay() -> None:
    keys = jax.vmap(lambda seed: jax.random.key(seed, impl="rbg"))(jnp.arange(3, dtype=jnp.uint32))
    assert fused(keys) is keys


@pytest.mark.parametrize("backend", ["jax", "host"])
def test_draws_follow_from_seed_episode_step_purpose_and_order(backend: str) -> None:
    keys, episodes, length = keys_of(jnp.arange(4, dtype=jnp.uint32)), jnp.arange(4), jnp.arange(4) * 10
    with written_for(backend):
        draw = Draw(of_episodes(keys, episodes), length, Purpose.MEMORY, "float32")
        draw.chance(0.5)
        found, whole = draw.normal((2,)), draw.integers((5,), -3, 12)
    for world in range(4):
        key = jax.random.fold_in(jax.random.key(world), world)
        key = jax.random.fold_in(key, world * 10 * len(Purpose) + Purpose.MEMORY)
        second, third = (jax.random.fold_in(key, number) for number in (2, 3))
        np.testing.assert_array_equal(found[world], jax.random.normal(second, (2,), jnp.float32))
        np.testing.assert_array_equal(whole[world], jax.random.randint(third, (5,), -3, 12))


def test_no_loop_is_left_in_a_program_that_draws() -> None:
    def drawn(seeds: jax.Array) -> jax.Array:
        return Draw(of_episodes(keys_of(seeds), seeds), seeds, Purpose.START, "float32").uniform((3,))

    text = jax.jit(drawn).lower(jnp.arange(3, dtype=jnp.uint32)).compile().as_text()
    assert not re.search(r"\bwhile\(", text)
