"""Controls of many groups, which one launch copies for each step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simengine import Simulation
from simengine.zoo import random_robot
from tests.gpu.compare import to_host
from tests.models import OWN, gymnasium_path

MODELS: list[Any] = [gymnasium_path("ant"), *(random_robot(seed) for seed in range(6)), OWN["pile"]]
WORLDS, STEPS = (600, 3, 2, 1, 40, 5, 3, 2), 7


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("emission", ["counted", "ahead"])
def test_each_group_has_its_own_controls_in_each_step(dtype: str, emission: str) -> None:
    """As if each group had been alone, where its controls are copied by themselves."""
    options: dict[str, Any] = {"backend": "cuda", "dtype": dtype, "emission": emission}
    sim = Simulation(list(zip(MODELS, WORLDS, strict=True)), **options)
    rng = np.random.default_rng(1)
    ctrl = [rng.uniform(-1, 1, (STEPS, group.num_worlds, group.model.nu)).astype(dtype) for group in sim.groups]
    sim.step(STEPS, ctrl=ctrl)
    sim.step(1, ctrl=[own[:1] for own in ctrl])
    for model, group, own in zip(MODELS, sim.groups, ctrl, strict=True):
        alone = Simulation(model, group.num_worlds, **options)
        alone.step(STEPS, ctrl=own)
        alone.step(1, ctrl=own[:1])
        for name in ("qpos", "qvel", "ctrl"):
            assert to_host(group.field(name)).tobytes() == to_host(alone.groups[0].field(name)).tobytes()
        alone.close()
    sim.close()
