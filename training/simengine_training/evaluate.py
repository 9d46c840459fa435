"""Evaluates a policy by whole episodes, in simengine or in MuJoCo itself.

    policy = NumpyPolicy.load("out/ant")
    print(evaluate(policy, "simengine/Ant-v5", 100, engine="mujoco").mean)

In MuJoCo the environment is Gymnasium's own of the same name, in float64. The policy has never seen it, so that the
two means tell whether a policy has learned the task or a weakness of the engine.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from simengine_envs.registration import NAMESPACE, REGISTRATIONS, register_envs
from simengine_training.errors import MissingExtraError, TrainingError
from simengine_training.mujoco_episodes import Episode, Policy, run_episodes

ENGINES = ("simengine", "mujoco")
FIRST_SEED = 1_000_000
"""Seed of the first episode by default. Trainings choose their policies by episodes with seeds below it."""
MAX_STEPS = 100_000
"""Steps of an episode. A longer one is taken to have no end."""


class Evaluation(NamedTuple):
    """Whole episodes, in the order of their seeds.

    Attributes:
        returns: (episodes,), undiscounted return of each episode.
        lengths: (episodes,), number of steps of each episode.
        truncated: (episodes,) bool, whether the time limit ended the episode.
    """

    returns: np.ndarray
    lengths: np.ndarray
    truncated: np.ndarray

    @property
    def mean(self) -> float:
        """Mean return of an episode."""
        return float(self.returns.mean())

    @property
    def std(self) -> float:
        """Standard deviation of the returns."""
        return float(self.returns.std())

    def as_dict(self) -> dict[str, Any]:
        """What the episodes have in common, ready for JSON.

        `return_mean`, `return_std`, `return_min`, `return_max`, `length_mean`, `truncated` (the fraction of episodes
        that the time limit ended) and `episodes`.
        """
        return {
            "return_mean": round(self.mean, 3),
            "return_std": round(self.std, 3),
            "return_min": round(float(self.returns.min()), 3),
            "return_max": round(float(self.returns.max()), 3),
            "length_mean": round(float(self.lengths.mean()), 1),
            "truncated": round(float(self.truncated.mean()), 4),
            "episodes": len(self.returns),
        }


def evaluate(
    policy: Policy,
    env_id: str,
    episodes: int = 100,
    *,
    engine: str = "simengine",
    seed: int = FIRST_SEED,
    env_arguments: Mapping[str, Any] | None = None,
    processes: int | None = None,
    on_episode: Callable[[int], None] | None = None,
) -> Evaluation:
    """Run whole episodes of a policy. The result follows from the arguments, whatever `processes` is.

    Args:
        policy: gives actions (n, actions) for observations (n, observations), and the action (actions,) for a single
            observation, such as a `NumpyPolicy`.
        env_id: id of the environment.
        episodes: number of episodes.
        engine: "simengine" for the environment itself, with one world for each episode; "mujoco" for Gymnasium's own
            environment of the same name, such as `Ant-v5` for `simengine/Ant-v5`.
        seed: seed of the first episode; episode i has `seed + i`.
        env_arguments: further arguments of the environment. In MuJoCo those of the engine and of rendering are left
            out.
        processes: processes that run the episodes in MuJoCo; None for one on each core. With more than one, a script
            needs the usual `if __name__ == "__main__":` around what it does.
        on_episode: called with the number of episodes that have ended since the last call.

    Raises:
        ValueError: `engine` or `episodes` is out of its range, Gymnasium has no such environment, or the policy is for
            observations of another size.
        TrainingError: the environment cannot be made, or an episode has not ended after `MAX_STEPS` steps.
        MissingExtraError: a package that Gymnasium's MuJoCo environments need is not installed.
    """
    if episodes < 1:
        raise ValueError(f"episodes must be at least 1, not {episodes}")
    if engine not in ENGINES:
        raise ValueError(f"there is no engine {engine!r}; give one of {', '.join(ENGINES)}")
    count = on_episode or (lambda more: None)
    arguments = dict(env_arguments or {})
    if engine == "mujoco":
        return _in_mujoco(policy, env_id, range(seed, seed + episodes), arguments, processes, count)
    vector = make_worlds(env_id, episodes, arguments)
    try:
        return _first_episodes(policy, vector, seed, count)
    finally:
        vector.close()


def make_worlds(env_id: str, count: int, arguments: Mapping[str, Any]) -> VectorEnv[Any, Any, Any]:
    """Make the vector environment in which policies are evaluated, in autoreset mode SAME_STEP if it has a choice.

    Raises:
        TrainingError: there is no such environment, or it does not accept these arguments.
    """
    register_envs()
    try:
        # The mode of trainings, so that a training and its evaluations share what is compiled.
        own = gymnasium.spec(env_id).vector_entry_point is not None
        mode: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP} if own else {}
        return gymnasium.make_vec(env_id, num_envs=count, **mode, **arguments)
    except (gymnasium.error.Error, TypeError) as error:
        raise _not_made(env_id, error) from error


def _not_made(env_id: str, error: Exception) -> TrainingError:
    message = str(error).rstrip(".")
    return TrainingError(f"environment {env_id!r} cannot be made: {message}; check its id and arguments")


def _first_episodes(
    policy: Policy, vector: VectorEnv[Any, Any, Any], seed: int, count: Callable[[int], None]
) -> Evaluation:
    """Run the first episode of each world. Those that end first in a few worlds would be short ones too often."""
    observations, _ = vector.reset(seed=seed)
    returns, lengths = np.zeros(vector.num_envs), np.zeros(vector.num_envs, np.int64)
    running, limited = np.ones(vector.num_envs, bool), np.zeros(vector.num_envs, bool)
    for _ in range(MAX_STEPS):
        observations, rewards, terminated, truncated, _ = vector.step(policy(observations))
        returns[running] += rewards[running]
        lengths[running] += 1
        ended = running & (terminated | truncated)
        limited |= ended & ~terminated
        running &= ~ended
        if ended.any():
            count(int(ended.sum()))
        if not running.any():
            return Evaluation(returns, lengths, limited)
    raise TrainingError(
        f"the episode of world {np.flatnonzero(running)[0]} has not ended after {MAX_STEPS} steps; give the "
        "environment a time limit"
    )


def _in_mujoco(
    policy: Policy,
    env_id: str,
    seeds: range,
    arguments: dict[str, Any],
    processes: int | None,
    count: Callable[[int], None],
) -> Evaluation:
    # Not at the top: the options' module imports JAX, and those who only read a policy need not wait for it.
    from simengine_envs.options import EngineOptions
    from simengine_envs.rendering import RenderOptions

    others = (*EngineOptions._fields, *RenderOptions._fields)
    name, task = counterpart(env_id), {key: value for key, value in arguments.items() if key not in others}
    try:
        gymnasium.make(name, **task).close()  # where it fails, the error comes from here and not from a process
    except (gymnasium.error.Error, TypeError, OSError) as error:
        raise _not_made(name, error) from error
    found: dict[int, Episode] = {}
    for episode in run_episodes(policy, name, task, seeds, processes):
        found[episode.seed] = episode
        count(1)
    returns, lengths, truncated = zip(*(found[seed][1:] for seed in seeds), strict=True)
    return Evaluation(np.array(returns), np.array(lengths, np.int64), np.array(truncated, bool))


def counterpart(env_id: str) -> str:
    """Id of Gymnasium's own MuJoCo environment of the same name.

    Raises:
        ValueError: there is none.
        MissingExtraError: a package that Gymnasium's MuJoCo environments need is not installed.
    """
    name = env_id.removeprefix(f"{NAMESPACE}/")
    known = [item.id for item in REGISTRATIONS if item.id in gymnasium.registry]
    if name not in known:
        raise ValueError(
            f"Gymnasium has no environment of its own for {env_id!r}, so that it runs in simengine alone; those that "
            f"MuJoCo runs too are {', '.join(f'{NAMESPACE}/{each}' for each in known)}"
        )
    try:
        importlib.import_module("gymnasium.envs.mujoco")
    except ImportError as error:
        raise MissingExtraError(
            f"Gymnasium's MuJoCo environments need the package {(error.name or '').partition('.')[0]!r}, which is not "
            "installed; install what they need with: pip install 'gymnasium[mujoco]'"
        ) from error
    return name
