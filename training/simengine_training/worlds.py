"""The environment of a training as pure functions, and its worlds."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import AutoresetMode

from simengine_envs import EnvState, PureEnv, make_pure
from simengine_training.errors import TrainingError

States = Any  # an `EnvState`, or a tuple of them for several robots
SEEDS = 1_000_000  # seeds of worlds lie below; those of final evaluations do not


class Worlds(NamedTuple):
    """The worlds of a training between two rollouts.

    Attributes:
        state: state of the environment; of several robots a tuple of states.
        observation: (n, size), not normalised.
        discounted: (n,) float32, discounted sum of the rewards of the episode so far.
    """

    state: States
    observation: jax.Array
    discounted: jax.Array


def environment_of(env_id: str, arguments: dict[str, Any], autoreset: bool = True) -> PureEnv:
    """The environment of an id, in which an episode starts in the step that ends one, or only at a reset.

    Raises:
        TrainingError: there is no such environment, or it does not take these arguments.
    """
    mode = AutoresetMode.SAME_STEP if autoreset else AutoresetMode.DISABLED
    try:
        env = make_pure(env_id, autoreset_mode=mode, **arguments)
    except (TypeError, ValueError) as error:
        raise TrainingError(f"environment {env_id!r} cannot be made: {error}") from error
    low, high = env.action_range()
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise TrainingError(f"actions of {env_id!r} have no finite limits; give its task an action_range")
    return env


def to_actions(env: PureEnv, outputs: jax.Array) -> jax.Array:
    """Actions for the outputs of a policy (n, size): -1 and 1 are the limits of an action, to which it is clipped."""
    low, high = (np.asarray(bound, np.float32) for bound in env.action_range())
    return jnp.clip((high + low) / 2 + (high - low) / 2 * outputs, low, high)


def first_worlds(env: PureEnv, seeds: jax.Array, spread: bool) -> Worlds:
    """Worlds at the start of their first episodes.

    Args:
        env: the environment.
        seeds: (n,) seeds of the worlds.
        spread: whether the steps left of the first episodes are spread over the length of an episode, so that not all
            episodes are truncated at once.
    """
    state, observation = env.reset(seeds)
    limit = env.max_episode_steps
    if spread and limit is not None:
        keys = jax.vmap(jax.random.key)(seeds)
        length = jax.vmap(lambda key: jax.random.randint(key, (), 0, limit, jnp.int32))(keys)
        state = _with_length(state, length)
    return Worlds(state, observation, jnp.zeros(len(seeds), jnp.float32))


def _with_length(state: States, length: jax.Array) -> Any:
    """A state with other numbers of steps (n,) of the episodes so far."""
    if isinstance(state, EnvState):
        return state._replace(length=length)
    ends = np.cumsum([len(part.length) for part in state])
    pieces = jnp.split(length, ends[:-1])
    return tuple(part._replace(length=piece) for part, piece in zip(state, pieces, strict=True))


def episodes_of(state: States) -> jax.Array:
    """Numbers of the worlds' episodes since their seeds were set, (n,) int32."""
    if isinstance(state, EnvState):
        return state.episode
    return jnp.concatenate([part.episode for part in state])


def seeds_of(seed: int, purpose: int, count: int) -> np.ndarray:
    """Seeds (count,) uint32 of worlds, all different and below `SEEDS`.

    They follow from the seed of a training and a purpose: 0 to learn, 1 to choose the best policy.
    """
    draw = np.random.default_rng([seed, purpose])
    return draw.choice(SEEDS, count, replace=False).astype(np.uint32)
