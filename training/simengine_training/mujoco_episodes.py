"""Runs episodes in Gymnasium's own MuJoCo environments, on several processes.

This file imports neither JAX nor simengine, so that the processes start fast.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_all_start_methods, get_context
from typing import Any, NamedTuple

import gymnasium
import numpy as np

Policy = Callable[[np.ndarray], np.ndarray]

# A product with one observation is small, and processes on all cores would wait for each other's threads.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Episode(NamedTuple):
    """A whole episode.

    Attributes:
        seed: seed of the environment's reset.
        total: undiscounted return.
        length: number of steps.
        truncated: whether the time limit ended it.
    """

    seed: int
    total: float
    length: int
    truncated: bool


def run_episodes(
    policy: Policy, env_id: str, arguments: Mapping[str, Any], seeds: range, processes: int | None
) -> Iterator[Episode]:
    """Run one episode for each seed, and return each when it has ended, in any order.

    An episode follows from its seed alone, so that the number of processes changes nothing.

    Args:
        policy: gives the action for an observation. With several processes it is pickled.
        env_id: id of an environment of Gymnasium.
        arguments: arguments of the environment.
        seeds: the seeds.
        processes: number of processes; None for one on each core that this process may use. One means this process.
    """
    wanted = min(len(seeds), processes or _cores())
    if wanted == 1:
        env = gymnasium.make(env_id, **arguments)
        try:
            yield from (run_episode(policy, env, seed) for seed in seeds)
        finally:
            env.close()
        return
    made = partial(_open, policy, env_id, dict(arguments))
    with ProcessPoolExecutor(wanted, get_context(_start_method()), made) as pool:
        with _environment(_ONE_THREAD):  # which the processes inherit as they start
            waiting = [pool.submit(_run, seed) for seed in seeds]
        try:
            yield from (done.result() for done in as_completed(waiting))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def run_episode(policy: Policy, env: gymnasium.Env[Any, Any], seed: int) -> Episode:
    """Run one episode."""
    observation, _ = env.reset(seed=seed)
    total, length, terminated, truncated = 0.0, 0, False, False
    while not (terminated or truncated):
        observation, reward, terminated, truncated, _ = env.step(policy(observation))
        total += float(reward)
        length += 1
    return Episode(seed, total, length, bool(truncated and not terminated))


def _start_method() -> str:
    """How processes start. A fork of this one would inherit the locks of JAX's threads; one of a process without
    threads, which has imported what all need, starts in milliseconds."""
    return "forkserver" if "forkserver" in get_all_start_methods() else "spawn"


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Have variables in this process' environment for a while."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_here: dict[str, Any] = {}
"""The policy and the environment of a process of the pool."""


def _open(policy: Policy, env_id: str, arguments: dict[str, Any]) -> None:
    # Ctrl-C reaches every process of a terminal. The one that waits for the others ends them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _here.update(policy=policy, env=gymnasium.make(env_id, **arguments))


def _run(seed: int) -> Episode:
    return run_episode(_here["policy"], _here["env"], seed)
