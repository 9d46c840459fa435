"""What environments on a CPU compute in one call has the bits of XLA, whatever the numbers and the number of worlds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simengine
from simengine.xla import chains, host_calls
from simengine.xla.chains import CHAIN
from simengine_envs import PureEnv, rounding
from simengine_envs.lanes.chain import in_chain
from simengine_envs.lanes.values import NotInLanes
from simengine_envs.rounding import rounded
from simengine_envs.task import Task
from simengine_envs.tasks.cartpole import CartPoleSwingUp
from simengine_envs.tasks.half_cheetah import HalfCheetah
from simengine_envs.tasks.hopper import Hopper
from simengine_envs.tasks.inverted_double_pendulum import InvertedDoublePendulum
from simengine_envs.tasks.inverted_pendulum import InvertedPendulum
from simengine_envs.tasks.pusher import Pusher
from simengine_envs.tasks.reacher import Reacher
from simengine_envs.tasks.swimmer import Swimmer
from simengine_envs.written import written_for

pytestmark = [
    pytest.mark.skipif(not host_calls.calls_exist(), reason="needs a C++ compiler"),
    pytest.mark.usefixtures("single_precision"),
]
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 3e9, -3e9, 0.1, -1e-40], np.float32)
WORLDS = len(SPECIAL) ** 2  # more than a block, and not a multiple of one


@pytest.fixture
def single_precision() -> Iterator[None]:
    """JAX without 64-bit numbers, as in most programs. With them, steps have operations that no chain has."""
    with jax.enable_x64(False):
        yield


def numbers() -> tuple[np.ndarray, ...]:
    """Pairs of all special numbers (n,), vectors (n, 3), integers (n,) and masks (n,)."""
    generator = np.random.default_rng(0)
    one, other = (axis.ravel() for axis in np.meshgrid(SPECIAL, SPECIAL))
    vectors = generator.normal(size=(WORLDS, 3)).astype(np.float32)
    whole = generator.integers(-(2**31), 2**31, WORLDS).astype(np.int32)
    return one, other, vectors, whole, generator.random(WORLDS) < 0.3


@cache
def bare_step(dtype: str) -> tuple[Callable[..., Any], Any]:
    """Steps of a small model, which a chain needs, and the state of their worlds."""
    model = CartPoleSwingUp().load()
    return simengine.make_step(model, backend="host"), simengine.initial_state(model, dtype, num_worlds=WORLDS)


def in_call(function: Callable[..., Any], *arguments: Any, dtype: str = "float32") -> Any:
    """Results of a function in one call. Raises NotInLanes."""
    step, state = bare_step(dtype)

    def stepped(state: Any, *own: Any) -> Any:
        return step(state, jnp.zeros((WORLDS, 1), dtype)).qpos, function(*own)

    with written_for("host"):
        return jax.jit(lambda *own: in_chain(stepped, stepped, np.uint32(0), *own))(state, *arguments)[1]


def by_xla(function: Callable[..., Any], *arguments: Any) -> Any:
    """Results of a function as XLA computes it for an environment on a CPU, each operation rounded by itself."""
    with written_for("host"):
        return jax.jit(lambda nought, *own: rounded(function, nought, *own))(np.uint32(0), *arguments)


def assert_same_bits(found: Any, expected: Any) -> None:
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert one.dtype == other.dtype
        both = [np.asarray(array) for array in (one, other)]
        if both[0].dtype.kind == "f":  # of numbers that are none the bits do not matter
            both = [np.where(np.isnan(array), np.float32(np.nan), array).view(np.uint32) for array in both]
        np.testing.assert_array_equal(*both)


def real(x: Any, y: Any, v: Any, i: Any, m: Any) -> Any:
    return {
        "real": [x + y, x - y, x * y, x / y, -x, jnp.abs(x), x**3, jnp.square(x), jnp.floor(x), jnp.ceil(x)],
        "constants": [
            x + 0.0,
            x - 0.0,
            x * 1.0,
            x * -1.0,
            x / 1.0,
            x / 3,
            3 / x,
            v * np.float32([1, 0, 2]),
            v + np.float32([0, 1, 0]),
        ],
        "least": [jnp.maximum(x, y), jnp.minimum(x, y), jnp.clip(x, -0.5, 0.5), v.max(axis=1), v.min(axis=1)],
        "truth": [x < y, x <= y, x > y, x >= y, x == y, x != y, jnp.isfinite(x), m ^ (x < y), m == (x < y)],
        "chosen": [jnp.where(m, x, y), jnp.where(m[:, None], v, 0.0), x * m, v * m[:, None], x * (i < i)],
        "sums": [v.sum(axis=1), jnp.linalg.norm(v, axis=1), (v > 0).all(axis=1), (v > 0).any(axis=1)],
        "functions": [jnp.exp(v * 20), jnp.exp(x), jnp.sin(v * 9), jnp.cos(v), jnp.exp(x / 7), jnp.exp(x) * jnp.exp(y)],
    }


def whole(x: Any, y: Any, v: Any, i: Any, m: Any) -> Any:
    return {
        "whole": [i + i, i * 3, -i, i & 255, i ^ 7, ~i, i << 3, jnp.maximum(i, 5), i < 7, i.astype(jnp.float32)],
        "converted": [x.astype(jnp.int32), i.astype(jnp.uint32) >> 9, i.astype(bool), (i < 0).astype(jnp.int32)],
    }


def places(x: Any, y: Any, v: Any, i: Any, m: Any) -> Any:
    pair = jnp.stack([x, y], axis=1)
    return [
        *(jnp.concatenate([v, pair], axis=1), v[:, ::-1], v[:, 1:], v[:, None, :] * pair[:, :, None]),
        *(v.reshape(-1, 3, 1), v[:, np.array([2, 0])], v.at[:, 1:].set(pair), v.at[:, :2].add(pair)),
        *(jnp.tile(pair, 2), jnp.repeat(pair, 2, axis=1), jnp.split(v, 3, axis=1)),
    ]


@pytest.mark.parametrize("function", [real, whole, places])
def test_bits_are_those_of_xla(function: Callable[..., Any]) -> None:
    given = numbers()
    assert_same_bits(in_call(function, *given), by_xla(function, *given))


def test_float64() -> None:
    with jax.enable_x64(True):
        x, y = (np.where(array == SPECIAL[-1], 0.5, array).astype(np.float64) for array in numbers()[:2])
        found = in_call(lambda x, y: [x * y + 1, jnp.where(x < y, x, y), x.astype(np.float32)], x, y, dtype="float64")
        with np.errstate(all="ignore"):
            expected = [x * y + 1, np.where(x < y, x, y), x.astype(np.float32)]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("chosen", [(), (3,), (70, 99)])
def test_blocks_without_a_world_of_a_mask_choose_nothing(chosen: tuple[int, ...]) -> None:
    mask, old = np.zeros(WORLDS, bool), np.arange(WORLDS * 12, dtype=np.float32).reshape(WORLDS, 12)
    mask[list(chosen)] = True
    found = in_call(lambda mask, old: jnp.where(mask[:, None], 2 * old + 1, old), mask, old)
    np.testing.assert_array_equal(found, np.where(mask[:, None], 2 * old + 1, old))


def test_loops_store_results_in_place() -> None:
    """A call that stores a result over its argument has loaded all that it needs of it."""
    step, state = bare_step("float32")

    def turned(v: Any, state: Any) -> Any:
        following = step(state, jnp.zeros((WORLDS, 1), jnp.float32))
        return v + jnp.stack([v[:, 2], v[:, 0], v[:, 1]], axis=1) * 0.5, following

    start = expected = numbers()[2]
    for _ in range(5):
        expected = expected + expected[:, [2, 0, 1]] * np.float32(0.5)
    with written_for("host"):
        loop = jax.jit(
            lambda v, s: jax.lax.fori_loop(0, 5, lambda _, now: in_chain(turned, turned, np.uint32(0), *now), (v, s))
        )
        np.testing.assert_array_equal(loop(start, state)[0], expected)


@pytest.mark.parametrize(
    "function",
    [
        jnp.tanh,
        lambda v: v / jnp.linalg.norm(v, axis=1)[:, None],
        lambda v: jnp.tile(v[:, :1], 3) / v[:, 1:2],
        lambda v: jnp.tile(v[:, :1], 3) * (v[:, 1:2] > 0),
        lambda v: v[::-1],
        lambda v: jnp.cumsum(v, axis=0),
    ],
)
def test_what_has_no_form_on_lanes_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(NotInLanes):
        in_call(function, numbers()[2])


TASKS = [CartPoleSwingUp(), InvertedPendulum(), InvertedDoublePendulum(), Reacher(), Hopper(), HalfCheetah(), Swimmer()]


def lowered(task: Task) -> str:
    env = PureEnv(task, "host", max_episode_steps=10)
    state = jax.eval_shape(env.reset, np.arange(64, dtype=np.uint32))[0]
    return str(jax.make_jaxpr(env.step)(state, jax.ShapeDtypeStruct((64, env.action_size), "float32")))


@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__name__)
def test_a_step_is_one_call(task: Task) -> None:
    """Episodes that start included."""
    text = lowered(task)
    assert text.count("target_name=") == text.count(f"target_name={CHAIN}") == 1
    assert "while" not in text


def test_a_chain_is_another_one_where_numbers_of_operations_mean_something_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """XLA's cache of compiled programs outlives a version of the engine."""

    env = PureEnv(CartPoleSwingUp(), "host")
    state = jax.eval_shape(env.reset, np.arange(8, dtype=np.uint32))[0]

    def number() -> str:
        jax.clear_caches()
        lowered = jax.jit(lambda *own: env.step(*own)).lower(state, jax.ShapeDtypeStruct((8, 1), "float32"))
        text = lowered.as_text()
        found: str = re.findall(r"number = (-?\d+)", text[text.index(CHAIN) :])[0]
        return found

    own = number()
    assert number() == own
    monkeypatch.setattr(chains, "enumeration", lambda: "of another version")
    assert number() != own


def test_a_step_with_an_operation_of_xla_is_as_without_lanes() -> None:
    text = lowered(Pusher())
    assert f"target_name={CHAIN}" not in text
    assert "while" in text


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("worlds", [3, 70])
def test_environments_have_the_bits_of_xla(worlds: int, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Episodes end by the limit, by an action that is not finite, and since the engine stops a world."""
    first = steps_of(worlds, mode)
    ended = np.asarray(first[1].terminated | first[1].truncated)
    assert ended.any(axis=1).sum() > 2
    assert not ended.all(axis=1).all()
    monkeypatch.setattr(rounding, "in_chain", refuse)
    assert_same_bits(first, steps_of(worlds, mode))


def steps_of(worlds: int, mode: str) -> Any:
    """The state after some steps in a loop, and what the steps gave."""
    env = PureEnv(Reacher(), "host", max_episode_steps=12, autoreset_mode=mode)
    actions = np.random.default_rng(0).uniform(-1, 1, (30, worlds, 2)).astype(np.float32)
    actions[3, 1] = np.nan
    state, _ = env.reset(0, worlds)
    state = state._replace(worlds=state.worlds._replace(qvel=state.worlds.qvel.at[2, 0].set(jnp.inf)))
    state, results = jax.jit(lambda s, a: jax.lax.scan(env.step, s, a))(state, actions)
    return state._replace(keys=jax.random.key_data(state.keys)), results


def refuse(*_: Any) -> Any:
    raise NotInLanes("refused by the test")


def test_vmap_and_derivatives() -> None:
    env = PureEnv(InvertedPendulum(), "host")
    states, _ = env.reset(0, 6)
    actions = np.linspace(-1, 1, 6, dtype=np.float32)[:, None]
    expected = env.step(states, actions)[1].observation
    pairs = jax.tree.map(lambda x: x.reshape(2, 3, *x.shape[1:]), states)
    found = jax.vmap(env.step)(pairs, actions.reshape(2, 3, 1))[1].observation
    np.testing.assert_array_equal(found.reshape(6, -1), expected)
    with pytest.raises(TypeError, match="no derivative"):
        jax.grad(lambda a: env.step(states, a)[1].reward.sum())(actions)


_FUNCTIONS = """
import tests.envs.test_lanes as own
import jax, numpy as np
for name, most in (("exp", 95), ("sin", 95), ("cos", 95), ("erf_inv", 1)):
    given = most * np.random.default_rng(0).uniform(-1, 1, (own.WORLDS, 400)).astype(np.float32)
    own.assert_same_bits(own.in_call(getattr(jax.lax, name), given), own.by_xla(getattr(jax.lax, name), given))
"""


@pytest.mark.slow
def test_functions_have_the_bits_of_compilers_that_optimise() -> None:
    """The other tests tell XLA not to. It then computes erf_inv with other bits."""
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    command = [sys.executable, "-c", _FUNCTIONS]
    subprocess.run(command, check=True, env=environment, cwd=Path(__file__).parents[2])
