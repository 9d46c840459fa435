"""Makes an environment's memory and kernels on a GPU while its programs are compiled, all calls side by side."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, Future
from typing import Any

import simengine
from simengine_envs import PureEnv
from simengine_envs.mixed_pure import shares


def made_ahead(env: PureEnv, count: int, pool: Executor) -> list[Future[Any]]:
    """Make memory for steps and evaluations of an environment, each in a thread of its own.

    A step that is traced meanwhile, or later, takes the memory of the equal one that is made here, as long as that
    lives, and does not wait for it. Without this, each trace would compile its kernels by itself, before it goes on.

    Args:
        env: the environment, of one robot or of several.
        count: number of worlds.
        pool: threads.

    Returns:
        The functions in the making, to be kept; none on backends that compile little.
    """
    if env.backend != "cuda" or env.dtype != "float32":
        return []
    return [pool.submit(make, *arguments, **options) for make, arguments, options in _functions(env, count)]


def _functions(env: PureEnv, count: int) -> Iterator[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """What makes each function of the environment, with its arguments."""
    parts: tuple[PureEnv, ...] = getattr(env, "parts", (env,))
    for part, worlds in zip(parts, shares(count, len(parts)), strict=True):
        keep = tuple(sorted(set(part.task.derived)))
        options = {"backend": part.backend, "num_worlds": worlds, **part.room}
        yield simengine.make_forward, (part.model,), {"keep": part.kept_at_start, **options}
        yield simengine.make_step, (part.model,), {"steps": part.task.frame_skip, "keep": keep, **options}
