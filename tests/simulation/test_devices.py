"""Arrays of another device are refused in one sentence; see `tests/gpu/test_cuda_devices.py` for those of real GPUs."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import jax.numpy as jnp
import numpy as np
import pytest

import simengine


class OfGpu:
    """An array of a GPU, as far as anybody can tell without one."""

    __cuda_array_interface__: ClassVar[dict[str, Any]] = {}

    def __init__(self, *shape: int):
        self.shape, self.ndim = shape, len(shape)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


def test_a_simulation_on_the_host_refuses_arrays_of_a_gpu_and_changes_nothing() -> None:
    sim = simengine.Simulation("half_cheetah", num_worlds=2, backend="host")
    before = sim.qpos.copy()
    sentence = "lies on GPU 0, but the simulation on the host; move it there, or give a NumPy array"
    with pytest.raises(ValueError, match=f"qvel {sentence}"):
        sim.set_state(qpos=np.ones((2, 9)), qvel=cast(Any, OfGpu(2, 9)))
    with pytest.raises(ValueError, match=f"body_mass {sentence}"):
        sim.set_params(body_mass=cast(Any, OfGpu(2, sim.model.nbody)))
    for steps, shape in ((1, (2, 6)), (3, (3, 2, 6))):
        with pytest.raises(ValueError, match=f"ctrl {sentence}"):
            sim.step(steps, ctrl=cast(Any, OfGpu(*shape)))
    np.testing.assert_array_equal(sim.qpos, before)


def test_a_simulation_on_the_host_takes_arrays_of_jax_on_the_host() -> None:
    sim = simengine.Simulation("half_cheetah", num_worlds=2, backend="host")
    sim.set_state(qvel=jnp.ones((2, 9)))
    sim.step(ctrl=jnp.zeros((2, 6)))
    sim.step(3, ctrl=jnp.zeros((3, 2, 6)))
