"""Functions that are made ahead are those that a training's programs find when they are traced."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import numpy as np
import pytest

from simengine.xla import calls
from simengine_training import programs
from simengine_training.memories import _functions, made_ahead
from simengine_training.worlds import environment_of


@pytest.mark.parametrize(
    ("env_id", "count", "arguments"),
    [
        ("simengine/Ant-v5", 3, {}),
        ("simengine/Ant-v5", 3, {"nconmax": 50, "njmax": 200}),
        ("simengine/MixedLocomotion-v0", 5, {"robots": ("ant", "quadruped")}),
    ],
)
def test_programs_find_what_was_made(env_id: str, count: int, arguments: dict[str, Any]) -> None:
    env = environment_of(env_id, {"backend": "host", **arguments})
    made = [make(*given, **options) for make, given, options in _functions(env, count)]
    before = set(calls._calls)
    state, _ = jax.eval_shape(env.reset, np.zeros(count, np.uint32))
    jax.eval_shape(env.step, state, np.zeros((count, env.action_size), np.float32))
    assert len(made) == 2 * len(getattr(env, "parts", (env,)))
    assert set(calls._calls) == before


def test_little_is_compiled_on_the_host() -> None:
    assert made_ahead(environment_of("simengine/Ant-v5", {"backend": "host"}), 3, None) == []  # type: ignore[arg-type]


def test_no_program_runs_before_memory_is_made(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    making: Future[Any] = Future()
    monkeypatch.setattr(programs, "made_ahead", lambda *arguments: [making])
    made = programs.Programs(tiny())
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(made.first_state)
        made._first.result()
        made._iteration.result()
        with pytest.raises(TimeoutError):
            running.result(0.1)
        making.set_exception(MemoryError("full"))
        with pytest.raises(MemoryError, match="full"):
            running.result()
