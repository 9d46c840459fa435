"""Registers environments with Gymnasium."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from gymnasium.envs import registration  # which is there while `import gymnasium` loads the entry points

NAMESPACE = "simengine"
SINGLE_ENTRY, VECTOR_ENTRY = "simengine_envs.single:SingleEnv", "simengine_envs.vector:BatchEnv"
_MIXED = "simengine_envs.mixed:MixedBatchEnv"


class Registration(NamedTuple):
    """One environment id.

    Attributes:
        id: name and version; where Gymnasium has this environment too, the same as its own.
        task: class of the task, "module:Class".
        max_episode_steps: environment steps after which an episode is truncated.
        reward_threshold: return at which the task counts as solved; None where no such number is known.
        arguments: arguments of the task that differ from its own defaults.
    """

    id: str
    task: str
    max_episode_steps: int
    reward_threshold: float | None
    arguments: Mapping[str, Any] = {}


_TASKS = "simengine_envs.tasks"


def _velocity() -> Iterator[Registration]:
    """Velocity tracking, for each robot on each ground."""
    for robot in ("Quadruped", "Biped", "Go1", "G1"):
        for terrain in ("Flat", "Rough"):
            arguments = {"robot": robot.lower(), "terrain": terrain.lower()}
            task = f"{_TASKS}.velocity:VelocityTracking"
            yield Registration(f"{robot}{terrain}-v0", task, 1000, None, arguments)


REGISTRATIONS: tuple[Registration, ...] = (
    Registration("Ant-v5", f"{_TASKS}.ant:Ant", 1000, 6000.0),
    Registration("HalfCheetah-v5", f"{_TASKS}.half_cheetah:HalfCheetah", 1000, 4800.0),
    Registration("Hopper-v5", f"{_TASKS}.hopper:Hopper", 1000, 3800.0),
    Registration("Humanoid-v5", f"{_TASKS}.humanoid:Humanoid", 1000, None),
    Registration("HumanoidStandup-v5", f"{_TASKS}.humanoid_standup:HumanoidStandup", 1000, None),
    Registration(
        "InvertedDoublePendulum-v5", f"{_TASKS}.inverted_double_pendulum:InvertedDoublePendulum", 1000, 9100.0
    ),
    Registration("InvertedPendulum-v5", f"{_TASKS}.inverted_pendulum:InvertedPendulum", 1000, 950.0),
    Registration("Pusher-v5", f"{_TASKS}.pusher:Pusher", 100, 0.0),
    Registration("Reacher-v5", f"{_TASKS}.reacher:Reacher", 50, -3.75),
    Registration("Swimmer-v5", f"{_TASKS}.swimmer:Swimmer", 1000, 360.0),
    Registration("Walker2d-v5", f"{_TASKS}.walker2d:Walker2d", 1000, None),
    Registration("CartPoleSwingUp-v0", f"{_TASKS}.cartpole:CartPoleSwingUp", 500, None),
    *_velocity(),
    Registration("PickUp-v0", f"{_TASKS}.pickup:PickUp", 250, None),
    Registration("MixedLocomotion-v0", f"{_TASKS}.mixed_locomotion:MixedLocomotion", 1000, None),
)
_MIXED_TASKS = ("MixedLocomotion-v0",)


def register_envs() -> None:
    """Register every environment of simengine with Gymnasium as `simengine/<id>`; a second call changes nothing.

    The entry point `simengine` in the group `gymnasium.envs` calls this function. The ids contain their namespace, so
    that they are the same whether Gymnasium's plugin loader or an import calls it.
    """
    for item in REGISTRATIONS:
        name = f"{NAMESPACE}/{item.id}"
        if name not in registration.registry:
            vector = _MIXED if item.id in _MIXED_TASKS else VECTOR_ENTRY
            _register(name, item.task, item.max_episode_steps, item.reward_threshold, vector, item.arguments)


def register(
    name: str,
    task: Any,
    max_episode_steps: int | None = None,
    reward_threshold: float | None = None,
    **arguments: Any,
) -> None:
    """Register a task, so that `gymnasium.make` and `gymnasium.make_vec` make its environments.

    Args:
        name: id of the environment, such as "Balance-v0" or "mypackage/Balance-v0".
        task: class of the task (`simengine_envs.Task`), or "module:Class", which is imported when it is first needed.
        max_episode_steps: environment steps after which an episode is truncated; None for no limit.
        reward_threshold: return at which the task counts as solved.
        **arguments: arguments of the task that differ from its own defaults.
    """
    _register(name, task, max_episode_steps, reward_threshold, VECTOR_ENTRY, arguments)


def _register(
    name: str,
    task: Any,
    max_episode_steps: int | None,
    reward_threshold: float | None,
    vector: str,
    arguments: Mapping[str, Any],
) -> None:
    registration.register(
        id=name,
        entry_point=SINGLE_ENTRY,
        vector_entry_point=vector,
        max_episode_steps=max_episode_steps,
        reward_threshold=reward_threshold,
        kwargs={"task": task, **arguments},
    )


def names() -> list[str]:
    """Ids of all registered environments of simengine's kind, in order."""
    entries = VECTOR_ENTRY, _MIXED
    return sorted(name for name, spec in registration.registry.items() if spec.vector_entry_point in entries)


def check_name(name: str) -> None:
    """Raise ValueError, with all names and the nearest one, if no environment of simengine's kind has this id."""
    if name not in names():
        raise ValueError(f"there is no environment {name!r}{nearest(name)}; simengine has {', '.join(names())}")


def nearest(name: str) -> str:
    """Return the hint that an error gives for an unknown id: " (did you mean ...?)", or "" if no id is near."""
    # Not at the top: `import simengine` imports this module through its entry point, and may come second.
    from simengine.errors import did_you_mean

    return did_you_mean(name, names()) or did_you_mean(f"{NAMESPACE}/{name}", names())
