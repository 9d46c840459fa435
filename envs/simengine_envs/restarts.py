"""New episodes in worlds of a mask: computed in all worlds and taken where the mask says, or in a few worlds at a time.

Starts are seldom. A processor that computes them in all worlds, in every step, takes longer for them than for the rest
of a step. So a loop starts the episodes there, those of few worlds in one round, and makes no round where none ended.
Its parts are calls and few kernels: XLA wakes threads of its own where more than eight kernels are ready at once, which
takes longer than what they compute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from simengine_envs.results import EnvState
from simengine_envs.rows import first_rows, put_rows, take_rows
from simengine_envs.task import Values

# Number of worlds that start an episode in one round, or a sixteenth of all worlds if that is more. Ends of episodes
# are spread over time, so that there is seldom a second round.
FEW_RESTARTS = 32

Last = dict[str, Any]
"""What the start of an episode depends on: fields of `EnvState` by name, those of `of_start`."""

Begin = Callable[[Last, jax.Array], tuple[EnvState, Values]]
"""The start of episodes (n,) and what the task reports of it, which are valid in worlds of a mask (n,) only."""


def of_start(state: EnvState) -> Last:
    """What the start of the next episodes depends on."""
    return {name: getattr(state, name) for name in ("keys", "episode", "params", "memory", "length", "total")}


def restarted_in_all(state: EnvState, info: Values, mask: jax.Array, begin: Begin) -> tuple[EnvState, Values]:
    """The state and the info with new episodes in worlds of a mask (n,), computed without a loop."""
    fresh = begin(of_start(state), mask)
    return jax.tree.map(lambda old, new: of_worlds(mask, new, old), (state, info), fresh)  # type: ignore[no-any-return]


def restarted_by_rounds(
    state: EnvState, info: Values, mask: jax.Array, begin: Begin, rows_of_all: bool
) -> tuple[EnvState, Values]:
    """The state and the info with new episodes in worlds of a mask (n,), a few of them in each round of a loop.

    Args:
        state, info, mask, begin: as above.
        rows_of_all: whether all worlds of the mask start in one round where there are few worlds in all.
    """
    count = len(mask)
    few = min(count, max(FEW_RESTARTS, count // 16))
    keys = state.keys  # which stay as they are

    def next_round(carry: tuple[tuple[Last, Values], jax.Array]) -> tuple[tuple[Last, Values], jax.Array]:
        (now, info), left = carry
        whole = EnvState(**now, keys=keys)
        if rows_of_all and count <= few:
            done, info = restarted_in_all(whole, info, left, begin)
            return (without_keys(done), info), jnp.zeros_like(left)
        chosen, left = first_rows(left, few)
        fresh, said = begin(take_rows(of_start(whole), chosen), chosen < count)
        return put_rows((now, info), chosen, (without_keys(fresh), said)), left

    first = ((without_keys(state), info), mask)
    (last, info), _ = jax.lax.while_loop(lambda carry: carry[1].any(), next_round, first)
    return EnvState(**last, keys=keys), info


def without_keys(state: EnvState) -> Last:
    """The fields of a state but for the keys of its worlds, which no episode changes."""
    return {name: value for name, value in state._asdict().items() if name != "keys"}


def of_worlds(mask: jax.Array, one: jax.Array, other: jax.Array) -> jax.Array:
    """Choose by world: `one` where the mask (n,) is true."""
    return jnp.where(mask.reshape(-1, *(1,) * (one.ndim - 1)), one, other)
