"""`EnvState` and `StepResult`: what steps of pure environments take and give."""

from __future__ import annotations

from typing import NamedTuple

import jax

import simengine
from simengine_envs.task import Values


class EnvState(NamedTuple):
    """All that a step of n worlds depends on, a pytree of arrays whose first axis is the world.

    Attributes:
        worlds: state of the physics.
        fields: derived fields that the task reads, by name.
        params: fields of the model table in which worlds differ, by name.
        memory: values that the task remembers, by name.
        action: (n, action size) action of the latest step.
        keys: (n,) JAX keys that follow from the worlds' seeds.
        episode: (n,) int32, number of the episode since the seed was set.
        length: (n,) int32, steps of the episode so far.
        total: (n,) return of the episode so far.
        ended: (n,) bool, whether the episode ended in the latest step and no new one has started.
    """

    worlds: simengine.BatchState
    fields: Values
    params: Values
    memory: Values
    action: jax.Array
    keys: jax.Array
    episode: jax.Array
    length: jax.Array
    total: jax.Array
    ended: jax.Array


class StepResult(NamedTuple):
    """What a step of n worlds reports.

    Attributes:
        observation: (n, size). With autoreset mode SAME_STEP it is the first one of the new episode where one starts.
        reward: (n,).
        terminated: (n,) bool.
        truncated: (n,) bool.
        info: values (n, ...) by name: reward terms, and what the task reports.
        restarted: (n,) bool, the worlds in which an episode started instead of a step being reported.
        final_observation: (n, size), the observation before new episodes started. It is another array than
            `observation` in mode SAME_STEP only.
        episode_return: (n,) return of the episode up to this step.
        episode_length: (n,) int32, steps of the episode up to this step.
        stalled: (n,) bool, the worlds that stood still in this step since the memory for contacts was full; see
            `simengine.BatchState`. Environments with a `step` from Python raise an error soon after.
        bad_action: (n,) bool, the worlds whose action was not finite, and whose episode therefore ended. Environments
            with a `step` from Python raise an error soon after.
        flagged: (n,) int32, 0, or the index in `simengine.WORLD_STATUS` of the stage that met a number in this step
            which is not finite or beyond 1e10. The episode ended. `warnings()` of environments counts them.
    """

    observation: jax.Array
    reward: jax.Array
    terminated: jax.Array
    truncated: jax.Array
    info: Values
    restarted: jax.Array
    final_observation: jax.Array
    episode_return: jax.Array
    episode_length: jax.Array
    stalled: jax.Array
    bad_action: jax.Array
    flagged: jax.Array
