"""Bits of a world do not depend on the number of worlds: states, observations, rewards and infos of every task."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simengine_envs import Draw, PureEnv, Snapshot, Task
from simengine_envs.options import task_class
from simengine_envs.registration import REGISTRATIONS
from simengine_envs.rounding import rounded
from simengine_envs.written import written_for

STEPS, LIMIT, NUMBERS = 50, 20, (1, 3, 64, 150)  # 64 worlds or fewer start episodes in one round, and 32 of more
QUICK = ("CartPoleSwingUp-v0",)


class Careless(Task):
    """A task of a user, who adds and multiplies as it comes, with own masses in every world."""

    xml_file = "cartpole"
    frame_skip = 2
    weights = {"effort": -0.013}  # noqa: RUF012
    hidden: int = 17

    def start(self, model: Any, draw: Draw, last: Any) -> Mapping[str, Any]:
        return {
            "qpos": draw.normal((model.nq,), 0.3) * 1.7 + 0.1,
            "params": {"body_mass": draw.uniform((model.nbody,), 0.8, 1.2) * model.mj.body_mass},
            "memory": {"mean": draw.uniform((self.hidden,)), "place": draw.uniform((), -1, 1)},
        }

    def _layer(self, now: Snapshot) -> Any:
        matrix = np.linspace(-1, 1, 4 * self.hidden).reshape(4, self.hidden)
        return jnp.tanh(jnp.concatenate([now.qpos, now.qvel], axis=1) @ matrix)

    def rewards(self, before: Snapshot, now: Snapshot) -> Mapping[str, Any]:
        error = now.qpos[:, 0] * 0.7 - now.memory["place"]
        near = jnp.exp(-(error**2) + 0.3 * now.qvel[:, 0] ** 3 / (1 + jnp.abs(now.qvel).sum(axis=1) ** 3))
        spread = jnp.linalg.norm(self._layer(now) - now.memory["mean"], axis=1)
        turned = jnp.einsum("ni,ni->n", self._layer(now), now.memory["mean"]) + now.qpos.mean(axis=1) * 0.1
        return {"near": near, "effort": jnp.sum(now.action**2, axis=1) + spread * 0.3, "turned": turned}

    def terminated(self, before: Snapshot, now: Snapshot) -> Any:
        return jnp.abs(now.qpos[:, 1]) > 2.5

    def remember(self, before: Snapshot, now: Snapshot, draw: Draw) -> Mapping[str, Any]:
        blended = 0.9 * now.memory["mean"] + 0.1 * self._layer(now)
        return {"mean": jnp.where(draw.chance(0.1)[:, None], draw.normal((self.hidden,)), blended)}

    def observation(self, now: Snapshot, draw: Draw) -> Any:
        seen = jnp.concatenate([now.qpos, now.qvel, now.memory["mean"]], axis=1)
        return seen * 0.3 + draw.normal(seen.shape[1:], 0.1)


OPTIMISED = {"xla_backend_optimization_level": 2}
"""As users have it. Otherwise `erf_inv`, of which normal numbers are made, has other bits than in custom calls."""


def rolled(env: PureEnv, num_envs: int, actions: np.ndarray) -> Any:
    """The last state, and the results of all steps with the steps as second axis."""
    state, first = jax.jit(env.reset, static_argnums=1, compiler_options=OPTIMISED)(3, num_envs)
    steps = jax.jit(lambda s, a: jax.lax.scan(env.step, s, a), compiler_options=OPTIMISED)
    state, results = steps(state, actions[:, :num_envs])
    state = state._replace(keys=jax.random.key_data(state.keys))
    swapped = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), results)
    return jax.device_get({"state": state, "first": first, "results": swapped})


def check(task: Task) -> None:
    with jax.enable_x64(False):
        env = PureEnv(task, "host", "float32", LIMIT)
        low, high = env.action_range()
        actions = np.random.default_rng(0).uniform(low, high, (STEPS, max(NUMBERS), len(low))).astype(np.float32)
        *smaller, many = (rolled(env, num_envs, actions) for num_envs in NUMBERS)
    assert many["results"].restarted.any()
    for num_envs, few in zip(NUMBERS, smaller, strict=False):
        for (path, one), other in zip(jax.tree.leaves_with_path(few), jax.tree.leaves(many), strict=True):
            where = f"{num_envs} worlds: {jax.tree_util.keystr(path)}"
            np.testing.assert_array_equal(one, other[:num_envs], err_msg=where)


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(item, id=item.id, marks=[] if item.id in QUICK else pytest.mark.slow)
        for item in REGISTRATIONS
        if not item.id.startswith(("Go1", "G1"))  # models that are downloaded
    ],
)
def test_worlds_do_not_depend_on_their_number(item: Any) -> None:
    check(task_class(item.task)(**item.arguments))


@pytest.mark.slow
def test_worlds_of_a_task_of_ones_own_do_not_depend_on_their_number() -> None:
    check(Careless())


@pytest.mark.parametrize("mode", ["NextStep", pytest.param("SameStep", marks=pytest.mark.slow)])
def test_starts_under_a_mask_have_the_bits_of_starts_in_a_loop(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """A GPU, which would wait for the host in a loop, computes the starts of all worlds in every step."""
    results = []
    with jax.enable_x64(False):
        actions = np.random.default_rng(0).uniform(-1, 1, (STEPS, 5, 1)).astype(np.float32)
        for backends in (frozenset(), frozenset({"host"})):
            monkeypatch.setattr("simengine_envs.pure.RESTARTS_UNDER_MASK", backends)
            env = PureEnv(Careless(), "host", "float32", LIMIT, mode)
            state, _ = env.reset(0, 5)
            assert ("while" in str(jax.make_jaxpr(env.step)(state, actions[0]))) == (not backends)
            results.append(rolled(env, 5, actions))
    assert (results[0]["state"].episode > 1).all()
    for (path, one), other in zip(jax.tree.leaves_with_path(results[0]), jax.tree.leaves(results[1]), strict=True):
        np.testing.assert_array_equal(one, other, err_msg=jax.tree_util.keystr(path))


def test_rounding_apart_changes_no_more_than_the_rounding() -> None:
    """Calls, branches, matrices and sums give what JAX gives, within rounding."""

    @jax.jit
    def inner(x: jax.Array) -> jax.Array:
        return jnp.where(x > 0, x**2, -(x**3)) / 3

    def function(x: jax.Array, matrix: jax.Array) -> dict[str, Any]:
        branch = jax.lax.cond(x.sum() > 0, lambda y: (y * 2).mean(axis=1), lambda y: y.prod(axis=1), x)
        totals = jax.lax.scan(lambda total, row: (total + row.sum(), total), 0.0, x)[0]
        several = jnp.einsum("nij,njk->nki", x.reshape(4, 2, 3), x.reshape(4, 3, 2))
        empty = x[:, :0].sum(axis=1)
        left = jax.lax.map(lambda row: (row * 2).sum(), x)
        return {
            "l": left,
            "z": inner(x) @ matrix,
            "a": branch,
            "s": totals,
            "e": several,
            "n": empty,
            "k": x.sum(axis=(0, 1)),
        }

    x = jnp.asarray(np.random.default_rng(0).normal(size=(4, 6)), jnp.float32)
    matrix = jnp.asarray(np.random.default_rng(1).normal(size=(6, 5)), jnp.float32)
    zero = jnp.uint32(0)
    for run in (rounded, jax.jit(rounded, static_argnums=0)):
        actual, expected = run(function, zero, x, matrix), function(x, matrix)
        assert actual.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(actual[name], value, rtol=2e-5, atol=2e-6, err_msg=name)


def test_arithmetic_of_constants_is_done_when_a_function_is_traced() -> None:
    """A compiler that must not join it with what follows would make kernels for it."""
    low, high = np.float32(0.1), np.asarray([0.3, 0.7], np.float32)

    def function(x: jax.Array) -> jax.Array:
        return x * (jnp.asarray(high) - jnp.asarray(low, jnp.float32))

    x = jnp.full((5, 2), 3, jnp.float32)
    whole = jax.jit(partial(rounded, function))
    with written_for("host"):
        assert whole.lower(jnp.uint32(0), x).as_text().count("stablehlo.or") == 1  # of the product
        np.testing.assert_array_equal(whole(jnp.uint32(0), x), np.float32(3) * np.tile(high - low, (5, 1)))


def test_wide_arrays_are_joined_by_a_call_on_a_processor() -> None:
    def function(x: jax.Array) -> Any:
        parts = [x * 2, x[:, :1], x[:, :0], jnp.abs(x[:, 1:])]
        return jnp.concatenate(parts, axis=1), jnp.concatenate([part > 0 for part in parts], axis=-1)

    x = jnp.asarray(np.random.default_rng(0).normal(size=(64, 9)), jnp.float32)
    expected = function(x)
    with written_for("host"):
        whole = jax.jit(partial(rounded, function, jnp.uint32(0)))
        assert whole.lower(x).as_text().count("simengine_join") >= 2
        found = whole(x)
        apart = jax.vmap(whole)(x.reshape(2, 32, 9))
    for one, other, joined in zip(found, expected, apart, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(joined.reshape(64, -1), other)


def test_constants_of_numpy_that_were_used_in_single_precision_before() -> None:
    constant = np.linspace(0, 1, 12).reshape(3, 4)

    def function(x: jax.Array) -> jax.Array:
        return x[:, None, None] * constant

    for wide in (False, True):
        with jax.enable_x64(wide):
            found = jax.jit(lambda x: rounded(function, jnp.uint32(0), x))(jnp.ones(2, jnp.float32))
            np.testing.assert_allclose(found[0], constant, rtol=1e-6)
