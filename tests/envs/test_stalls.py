"""Worlds that stand still since an arena is full: environments say so, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simengine
from simengine.errors import BackendError
from simengine_envs import PureEnv
from simengine_envs.options import EngineOptions, pure_env
from simengine_envs.tasks.ant import Ant

ROOM = 2.0  # contacts a world, which ants exceed once they lie on the ground


@pytest.fixture
def _small_arenas(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host's arenas grow. This gives them the room of a GPU's: beyond it all worlds keep their state."""
    make = simengine.make_step

    def make_small(model: Any, *, nconmax: int | None, **options: Any) -> Callable[..., Any]:
        keep = {*options.pop("keep"), "ncon"}
        step, steps = make(model, keep=keep, **options), options["steps"]
        room = nconmax or ROOM

        def small(state: Any, ctrl: Any, params: Any) -> Any:
            new, fields = step(state, ctrl, params)
            full = fields.pop("ncon").mean() > room
            kept = jax.tree.map(lambda old, now: jnp.where(full, old, now), state, new)
            return kept._replace(stalled=state.stalled + steps * full), fields

        return small

    monkeypatch.setattr(simengine, "make_step", make_small)
    monkeypatch.setattr("simengine_envs.options._compiled", {})


MESSAGE = (
    r"4 of 4 worlds of model .* stood still in a step, since the memory for contacts or constraint rows was full on "
    r"backend 'host'; make the environment with more room, such as nconmax=\d+, njmax=\d+"
)


@pytest.mark.parametrize("array", ["numpy", "jax"])
@pytest.mark.usefixtures("_small_arenas")
def test_a_full_arena_is_an_error_of_a_step(array: str) -> None:
    env: Any = gymnasium.make_vec("simengine/Ant-v5", num_envs=4, backend="host", array=array)
    env.reset(seed=0)
    action = np.zeros((4, 8), np.float32)
    steps: list[int] = []

    def run(env: Any, number: int) -> None:
        for step in range(number):
            env.step(jnp.asarray(action) if array == "jax" else action)
            jax.block_until_ready(env.unwrapped.state)
            steps.append(step)

    with pytest.raises(BackendError, match=MESSAGE) as caught:
        run(env, 200)
    assert "\n" not in str(caught.value)
    assert len(steps) > 3  # ants that fall touch nothing
    roomy: Any = gymnasium.make_vec("simengine/Ant-v5", num_envs=4, backend="host", nconmax=50, array=array)
    roomy.reset(seed=0)
    run(roomy, len(steps) + 3)


@pytest.mark.usefixtures("_small_arenas")
def test_a_single_environment_says_it_at_once() -> None:
    env: Any = gymnasium.make("simengine/Ant-v5", backend="host")
    env.reset(seed=0)
    seen = [env.unwrapped.state_vector()]

    def run() -> None:
        for _ in range(200):
            env.step(np.zeros(8))
            seen.append(env.unwrapped.state_vector())

    with pytest.raises(BackendError, match="1 of 1 worlds"):
        run()
    np.testing.assert_array_equal(env.unwrapped.state_vector(), seen[-1])


@pytest.mark.usefixtures("_small_arenas")
def test_a_program_has_the_flags_among_its_results() -> None:
    env = PureEnv(Ant(), "host")
    state, _ = env.reset(0, 4)
    idle = jnp.zeros((60, 4, 8))
    state, result = jax.jit(lambda s, a: jax.lax.scan(env.step, s, a))(state, idle)
    assert result.stalled.shape == (60, 4)
    assert result.stalled.dtype == bool
    assert not result.stalled[:3].any()
    assert result.stalled[-1].all()
    assert int(state.worlds.stalled[0]) == 5 * int(result.stalled[:, 0].sum())


def test_flags_are_looked_at_only_when_they_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    from simengine_envs.flags import Flags

    class Given:
        """Flags of a step that may not have been computed."""

        ready = False

        def copy_to_host_async(self) -> None:
            pass

        def is_ready(self) -> bool:
            return self.ready

        def __array__(self, *_: Any, **__: Any) -> np.ndarray:
            assert self.ready, "this would have waited"
            return np.array([False, True])

    stalls, flags = Flags(), Given()
    stalls.add(flags)  # type: ignore[arg-type]
    assert stalls.found() is None
    flags.ready = True
    assert stalls.found().tolist() == [False, True]  # type: ignore[union-attr]
    assert stalls.found() is None


def test_room_is_an_argument_of_the_engine() -> None:
    env = pure_env(Ant(), EngineOptions("host", nconmax=7, njmax=30), None, "NextStep")  # type: ignore[arg-type]
    assert env.room == {"nconmax": 7, "njmax": 30}
    state, _ = env.reset(0, 3)
    assert not env.step(state, jnp.zeros((3, 8)))[1].stalled.any()
    with pytest.raises(ValueError, match="nconmax is 0; give the number of entries of a world"):
        PureEnv(Ant(), "host", nconmax=0)
