"""Tensors of PyTorch: they share memory with JAX's arrays, and writing into them changes no environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simengine_envs import BatchEnv, Draw, Snapshot, Task

if TYPE_CHECKING:
    from simengine import Model

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


class Bare(Task):
    """A pendulum whose observation, reward and infos are parts of the state and the memory, with nothing computed."""

    xml_file = "inverted_pendulum"

    def start(self, model: Model, draw: Draw, last: Any) -> Mapping[str, Any]:
        goal = draw.uniform((), -1, 1)
        return {"qpos": draw.uniform((2,), -0.1, 0.1), "memory": {"goal": goal, "place": draw.uniform((2,))}}

    def remember(self, before: Snapshot, now: Snapshot, draw: Draw) -> Mapping[str, jax.Array]:
        return {"place": now.qpos}

    def rewards(self, before: Snapshot, now: Snapshot) -> Mapping[str, jax.Array]:
        return {"goal": now.memory["goal"], "effort": before.action[:, 0]}

    def observation(self, now: Snapshot, draw: Draw) -> jax.Array:
        return now.qpos

    def info(self, now: Snapshot) -> Mapping[str, jax.Array]:
        return {"goal": now.memory["goal"], "place": now.memory["place"], "velocity": now.qvel}


def leaves(env: Any) -> list[np.ndarray]:
    state = env.state._replace(keys=jax.random.key_data(env.state.keys))
    return [np.array(leaf) for leaf in jax.tree.leaves(state)]


def scribble(values: Any) -> int:
    """Write into all tensors, and count them."""
    tensors = [leaf for leaf in jax.tree.leaves(values) if hasattr(leaf, "data_ptr")]
    for tensor in tensors:
        tensor.fill_(1)
    return len(tensors)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_writing_into_tensors_changes_no_state(mode: str) -> None:
    torch: Any = pytest.importorskip("torch")
    env = BatchEnv(Bare, 3, array="torch", autoreset_mode=mode, backend="host", max_episode_steps=4)
    twin = BatchEnv(Bare, 3, array="torch", autoreset_mode=mode, backend="host", max_episode_steps=4)
    for other in (env, twin):
        made = other.reset(seed=1)
        assert scribble(made if other is env else ()) == (4 if other is env else 0)
    for number in range(6):
        action = torch.full((3, 1), 0.1 * number)
        assert scribble(env.step(action)) > 8
        action.fill_(9)
        twin.step(torch.full((3, 1), 0.1 * number))
        for mine, reference in zip(leaves(env), leaves(twin), strict=True):
            np.testing.assert_array_equal(mine, reference)


def test_tensors_share_memory_with_arrays_of_jax() -> None:
    torch: Any = pytest.importorskip("torch")
    env: Any = gymnasium.make_vec("simengine/Ant-v5", num_envs=8, array="torch", backend="host").unwrapped
    given: dict[int, jax.Array] = {}

    def recording(array: jax.Array) -> Any:
        tensor = torch.from_dlpack(array)
        given[tensor.data_ptr()] = array
        return tensor

    assert env.kind.from_jax is torch.from_dlpack
    env.kind = env.kind._replace(from_jax=recording)
    env.reset(seed=0)
    observation, reward, terminated, truncated, _ = env.step(torch.zeros(8, 8))
    assert observation.dtype == reward.dtype == torch.float32
    assert terminated.dtype == truncated.dtype == torch.bool
    for tensor in (observation, reward, terminated, truncated):
        array = given[tensor.data_ptr()]
        assert array.unsafe_buffer_pointer() == tensor.data_ptr()
        np.testing.assert_array_equal(np.asarray(array), tensor.numpy())


def test_actions_come_in_without_a_copy_where_their_memory_is_aligned() -> None:
    torch: Any = pytest.importorskip("torch")
    from simengine_envs.arrays import array_kind

    to_jax = array_kind("torch").to_jax
    whole = torch.randn(6, 16, 1)  # rows of 64 bytes
    for tensor in (whole, whole[2]):
        assert tensor.data_ptr() % 64 == 0
        assert to_jax(tensor).unsafe_buffer_pointer() == tensor.data_ptr()
    odd = torch.randn(5, 3, 1)[1]
    assert odd.data_ptr() % 64 != 0
    crossed = torch.randn(4, 3).T
    grown = torch.randn(4, 3, requires_grad=True)
    for tensor in (odd, crossed, grown):
        assert jnp.array_equal(to_jax(tensor), tensor.detach().numpy())
