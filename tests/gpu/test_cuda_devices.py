"""Arrays on another device than the one that steps are refused in one sentence at the call."""

from __future__ import annotations

from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simengine
import simengine_envs

pytestmark = pytest.mark.gpu
WORLDS = 4


@pytest.fixture(autouse=True)
def _first_gpu() -> None:
    """GPU 0 is current at the start of a test. JAX leaves the last one current when it starts."""
    import cupy

    simengine_envs.register_envs()
    jax.devices()
    cupy.cuda.Device(0).use()


def on_processor(shape: tuple[int, ...]) -> jax.Array:
    return jax.device_put(np.zeros(shape, np.float32), jax.devices("cpu")[0])


@pytest.fixture
def gpu() -> jax.Device:
    try:
        return jax.devices("gpu")[0]
    except RuntimeError:
        pytest.skip("JAX has no GPU here")


def test_a_simulation_on_a_gpu_takes_arrays_of_the_host_and_of_its_gpu_only() -> None:
    import cupy

    sim = simengine.Simulation("half_cheetah", num_worlds=WORLDS, backend="cuda")
    before = sim.qpos.get()
    for call in (
        lambda: sim.set_state(qpos=on_processor((WORLDS, 9))),
        lambda: sim.step(ctrl=on_processor((WORLDS, 6))),
        lambda: sim.step(2, ctrl=on_processor((2, WORLDS, 6))),
        lambda: sim.set_params(body_mass=on_processor((WORLDS, sim.model.nbody))),
    ):
        with pytest.raises(ValueError, match="lies on the host, but the simulation on GPU 0; move it there"):
            call()
    np.testing.assert_array_equal(sim.qpos.get(), before)
    sim.set_state(qpos=np.zeros((WORLDS, 9)))
    sim.step(ctrl=cupy.zeros((WORLDS, 6), "float32"))


def test_a_simulation_on_the_host_refuses_arrays_of_a_gpu() -> None:
    import cupy

    sim = simengine.Simulation("half_cheetah", num_worlds=WORLDS, backend="host")
    with pytest.raises(ValueError, match="qvel lies on GPU 0, but the simulation on the host; move it there"):
        sim.set_state(qvel=cupy.zeros((WORLDS, 9)))
    with pytest.raises(ValueError, match="ctrl lies on GPU 0"):
        sim.step(ctrl=cupy.zeros((WORLDS, 6)))


@pytest.mark.parametrize("kind", ["jax", "cupy", "torch"])
def test_an_environment_on_a_gpu_refuses_actions_of_the_host(kind: str, gpu: jax.Device) -> None:
    if kind == "torch":
        pytest.importorskip("torch")
    env: Any = gymnasium.make_vec("simengine/HalfCheetah-v5", num_envs=WORLDS, backend="cuda", array=kind)
    env.reset(seed=0)
    with pytest.raises(TypeError, match=f"is a numpy.ndarray; give an array of {kind}, as array= says"):
        env.step(np.zeros((WORLDS, 6), np.float32))
    if kind == "jax":
        with pytest.raises(TypeError, match=r"lies on .*[cC][pP][uU].*, but the environment on .*; move it there"):
            env.step(on_processor((WORLDS, 6)))
        env.step(jax.device_put(jnp.zeros((WORLDS, 6)), gpu))
    if kind == "torch":
        import torch

        with pytest.raises(TypeError, match=r"lies on .*[cC][pP][uU].*, but the environment on .*; move it there"):
            env.step(torch.zeros((WORLDS, 6)))
        env.step(torch.zeros((WORLDS, 6), device="cuda"))


@pytest.fixture
def _two_gpus() -> None:
    import cupy

    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("there is one GPU")


@pytest.mark.usefixtures("_two_gpus")
@pytest.mark.parametrize("executor", ["serial", "streams", "graph-cached", "pipeline", "device", "auto"])
def test_a_simulation_stays_on_its_gpu_whichever_is_current(executor: str) -> None:
    import cupy

    masses = np.linspace(1, 2, WORLDS * 8).reshape(WORLDS, 8)

    def steps(current: int) -> tuple[np.ndarray, np.ndarray]:
        sim: Any
        cupy.cuda.Device(0).use()
        with simengine.Simulation("half_cheetah", num_worlds=WORLDS, backend="cuda", executor=executor) as sim:
            cupy.cuda.Device(current).use()
            sim.set_state(qvel=np.ones((WORLDS, 9)))
            sim.set_params(body_mass=masses)
            sim.step(3, ctrl=np.full((3, WORLDS, 6), 0.5))
            sim.reset([1])
            sim.step()
            params = sim.params("body_mass")
            assert sim.qpos.device.id == params.device.id == 0
            assert cupy.cuda.Device().id == current
            return sim.qpos.get(), params.get()

    for here, there in zip(steps(0), steps(1), strict=True):
        np.testing.assert_array_equal(here, there)


@pytest.mark.usefixtures("_two_gpus")
def test_arrays_on_another_gpu_are_refused() -> None:
    import cupy

    sim = simengine.Simulation("half_cheetah", num_worlds=WORLDS, backend="cuda")
    with cupy.cuda.Device(1):
        there = cupy.zeros((WORLDS, 9), "float32")
    with pytest.raises(ValueError, match="qpos lies on GPU 1, but the simulation on GPU 0; move it there"):
        sim.set_state(qpos=there)
    if len(jax.devices()) > 1 and jax.devices()[0].platform == "gpu":
        env: Any = gymnasium.make_vec("simengine/HalfCheetah-v5", num_envs=WORLDS, backend="cuda", array="jax")
        env.reset(seed=0)
        with pytest.raises(TypeError, match=r"lies on .*1, but the environment on .*0; move it there"):
            env.step(jax.device_put(np.zeros((WORLDS, 6), np.float32), jax.devices("gpu")[1]))
