"""Steps inside JAX programs on a GPU: the bits of `Simulation.step`, full arenas, several GPUs, and environments.

They need JAX on the GPU, which other tests keep on the CPU: set JAX_PLATFORMS=cuda,cpu.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simengine
from tests.models import compile_model

pytestmark = pytest.mark.gpu
WORLDS = 33


@pytest.fixture(autouse=True)
def _on_the_gpu() -> Iterator[None]:
    """JAX must have the GPU; tests run in single precision unless they say otherwise."""
    try:
        device = jax.devices("gpu")[0]
    except RuntimeError:
        pytest.skip("JAX has no GPU here")
    before = jax.config.read("jax_enable_x64")
    jax.config.update("jax_enable_x64", False)
    with jax.default_device(device):
        yield
    jax.config.update("jax_enable_x64", before)


def model_of(name: str) -> simengine.Model:
    return simengine.load_model(compile_model(name) if name in ("actuators", "terrain", "two_arms") else name)


def started(model: simengine.Model, worlds: int, dtype: str = "float32") -> simengine.BatchState:
    state = simengine.initial_state(model, dtype, num_worlds=worlds)
    noise = np.random.default_rng(3).uniform(-0.3, 0.3, state.qvel.shape)
    return state._replace(qvel=jnp.asarray(noise, state.qvel.dtype))


def host(array: Any) -> np.ndarray:
    return np.asarray(array.get() if hasattr(array, "get") else array)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["ant", "half_cheetah", "humanoid", "actuators", "terrain", "two_arms"])
def test_a_scan_of_steps_has_the_bits_of_a_simulation(name: str, dtype: str) -> None:
    jax.config.update("jax_enable_x64", dtype == "float64")
    model = model_of(name)
    ctrl = np.random.default_rng(7).uniform(-1, 1, (15, WORLDS, model.nu)).astype(dtype)
    step = simengine.make_step(model, backend="cuda", steps=3, keep=("xpos", "qfrc_bias"))
    first = started(model, WORLDS, dtype)
    last, kept = jax.jit(lambda s, c: jax.lax.scan(step, s, c))(first, ctrl)
    options: dict[str, Any] = {"dtype": dtype, "keep": ("xpos", "qfrc_bias"), "on_nonfinite": "freeze"}
    with simengine.Simulation(model, WORLDS, backend="cuda", **options) as sim:
        sim.set_state(qpos=np.asarray(first.qpos), qvel=np.asarray(first.qvel))
        for own in ctrl:
            sim.step(3, ctrl=own)
        for field in ("qpos", "qvel", "act", "qacc_warmstart", "nstep", "world_status"):
            np.testing.assert_array_equal(getattr(last, field), host(sim.field(field)), err_msg=field)
        for field in ("xpos", "qfrc_bias"):
            np.testing.assert_array_equal(kept[field][-1], host(sim.field(field)), err_msg=field)
    assert not last.stalled.any()


def test_forward_evaluates_chosen_worlds() -> None:
    model, worlds = model_of("ant"), 3000
    state = simengine.make_step(model, backend="cuda", steps=40)(started(model, worlds), jnp.zeros((worlds, model.nu)))
    forward = jax.jit(simengine.make_forward(model, backend="cuda", keep=("qacc", "ncon")))
    whole = forward(state, jnp.zeros((worlds, model.nu)))
    rng = np.random.default_rng(0)
    for share in (0.5, 1.0, 0.02, 0.0, 0.9):
        mask = rng.random(worlds) < share
        some = forward(state, jnp.zeros((worlds, model.nu)), None, mask)
        for field, values in whole.items():
            expected = np.where(mask.reshape(-1, *(1,) * (values.ndim - 1)), values, 0)
            np.testing.assert_array_equal(some[field], expected, err_msg=f"{field} {share}")
    assert int(whole["ncon"].sum()) > worlds


def test_worlds_stand_still_where_an_arena_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worlds fall until more of them touch than the memory for contacts has room for. Nothing is lost or invented."""
    for place in ("emission.store", "xla.cuda_memory"):
        monkeypatch.setattr(f"simengine.{place}.first_entries", lambda *arguments: 12_000)
    model, worlds = model_of("ant"), 4000
    start = simengine.initial_state(model, num_worlds=worlds)
    start = start._replace(qpos=start.qpos.at[:, 2].add(0.5))
    step = jax.jit(simengine.make_step(model, backend="cuda", steps=10))
    idle = jnp.zeros((worlds, model.nu))
    states = [start]
    for _ in range(12):
        states.append(step(states[-1], idle))
    stalled = [int(state.stalled.max()) for state in states]
    assert stalled[1] == 0
    assert stalled[-1] > 0
    first = next(i for i, number in enumerate(stalled) if number)
    assert stalled[first:] == [10 * (k + 1) for k in range(len(states) - first)]
    np.testing.assert_array_equal(states[-1].qpos, states[first - 1].qpos)
    assert states[-1].nstep.tolist() == [10 * (first - 1)] * worlds
    with simengine.Simulation(model, worlds, backend="cuda") as sim:
        sim.set_state(qpos=np.asarray(start.qpos))
        sim.step(10 * (first - 1))
        np.testing.assert_array_equal(states[-1].qpos, host(sim.qpos))


def test_shard_map_over_gpus_has_the_same_bits() -> None:
    devices = jax.devices("gpu")
    if len(devices) < 2:
        pytest.skip("there is one GPU")
    from jax.sharding import Mesh
    from jax.sharding import PartitionSpec as P

    model, worlds = model_of("ant"), 32 * len(devices)
    step = simengine.make_step(model, backend="cuda", steps=3, keep=("xpos",))
    state, ctrl = started(model, worlds), jnp.full((worlds, model.nu), 0.2)
    spec = jax.tree.map(lambda _: P("worlds"), state)
    shapes = {"mesh": Mesh(np.array(devices), ("worlds",)), "in_specs": (spec, P("worlds"))}
    sharded = jax.jit(jax.shard_map(step, **shapes, out_specs=(spec, {"xpos": P("worlds")})))
    for _ in range(10):
        (split, fields), (state, whole) = sharded(state, ctrl), step(state, ctrl)
        np.testing.assert_array_equal(split.qpos, state.qpos)
        np.testing.assert_array_equal(fields["xpos"], whole["xpos"])
    assert len(split.qpos.sharding.device_set) == len(devices)


def test_models_that_are_solved_by_islands_are_refused_by_name() -> None:
    model = model_of("ant")
    model.table.solve_by_islands(True)
    with pytest.raises(simengine.BackendError, match=r"'ant'.* is solved island by island.*simengine.Simulation"):
        simengine.make_step(model, backend="cuda")


@pytest.mark.parametrize("array", ["jax", "torch", "cupy", "numpy"])
def test_worlds_of_an_environment_do_not_depend_on_their_number_or_the_arrays(array: str) -> None:
    pytest.importorskip({"numpy": "jax"}.get(array, array))
    compare_numbers("simengine/Ant-v5", array)


@pytest.mark.parametrize("name", ["QuadrupedFlat-v0", "BipedRough-v0", "PickUp-v0"])
def test_worlds_with_parameters_of_their_own_do_not_depend_on_their_number(name: str) -> None:
    compare_numbers(f"simengine/{name}", "jax")


@pytest.mark.parametrize("name", ["Ant-v5", "Humanoid-v5", "Pusher-v5", "QuadrupedFlat-v0", "CartPoleSwingUp-v0"])
def test_worlds_among_thousands_have_the_bits_of_a_few(name: str) -> None:
    compare_numbers(f"simengine/{name}", "jax", 4096)


def compare_numbers(name: str, array: str, most: int = WORLDS) -> None:
    """The first worlds of many have the bits that they have in a smaller environment."""
    import gymnasium

    import simengine_envs

    simengine_envs.register_envs()
    seen = []
    for worlds, kind in ((most, array), (5, "jax")):
        options: dict[str, Any] = {"backend": "cuda", "max_episode_steps": 13}
        env = gymnasium.make_vec(name, num_envs=worlds, array=kind, **options)
        observation, _ = env.reset(seed=4)
        found = [np.array(host_of(observation))[:5]]
        for k in range(30):
            actions = np.full((worlds, *env.single_action_space.shape), 0.1 * (k % 7), np.float32)
            observation, reward, *_ = env.step(like(actions, kind))
            found += [np.array(host_of(observation))[:5], np.array(host_of(reward))[:5, None]]
        seen.append(found)
    for one, other in zip(*seen, strict=True):
        np.testing.assert_array_equal(one.astype(np.float32), other.astype(np.float32))


@pytest.mark.parametrize("name", ["ant", "humanoid"])
def test_inverse_weights_are_those_of_a_host(name: str) -> None:
    from simengine import make_batch_params

    model, worlds = model_of(name), 700
    scale = np.random.default_rng(0).uniform(0.8, 1.25, (worlds, 1))
    given, mask = {"body_mass": jnp.asarray(scale * model.mj.body_mass, jnp.float32)}, jnp.arange(worlds) % 3 != 1
    found = jax.jit(make_batch_params(model, "cuda"))(given, mask, {})
    with jax.default_device(jax.devices("cpu")[0]):
        there = {key: np.asarray(value) for key, value in given.items()}
        expected = jax.jit(make_batch_params(model, "host"))(there, np.asarray(mask), {})
    assert found.keys() == expected.keys()
    for field, values in expected.items():
        np.testing.assert_allclose(found[field], values, rtol=1e-6, err_msg=field)


def like(actions: np.ndarray, kind: str) -> Any:
    """The actions as an array of a library on the GPU."""
    if kind == "torch":
        import torch

        return torch.as_tensor(actions, device="cuda")
    if kind == "cupy":
        import cupy

        return cupy.asarray(actions)
    return jnp.asarray(actions) if kind == "jax" else actions


def host_of(array: Any) -> Any:
    return array.cpu().numpy() if hasattr(array, "cpu") else host(array)
