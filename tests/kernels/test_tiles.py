"""Tiled kernels on the host: a world has the same bits in a tile, in the rest of a batch, and alone."""

from __future__ import annotations

import numpy as np
import pytest

import simengine
from simengine.errors import BackendError
from simengine.kernels import host_build
from simengine.kernels.host_codegen import host_source
from simengine.plan.tiles import TILED_KERNELS
from simengine.zoo import random_robot

MODELS = ("ant", "half_cheetah", "humanoid", "pusher", "swimmer", "inverted_double_pendulum", "quadruped", 1, 2, 3)
IN_DOUBLE = ("ant", "swimmer", 1)
"""Models that are stepped in double precision each time, the others in the second stage."""

FIELDS = ("xpos", "geom_xmat", "cdof", "qM", "qLD", "qfrc_bias", "qfrc_smooth", "qacc_smooth", "qacc")


def load(name: str | int) -> simengine.Model:
    return simengine.load_model(name if isinstance(name, str) else random_robot(seed=name))


def stepped(
    model: simengine.Model, worlds: slice, dtype: str, many: int = 41, mass: np.ndarray | None = None
) -> list[np.ndarray]:
    """State and derived fields, after some steps, of a batch of these worlds out of many."""
    rng = np.random.default_rng(0)
    start = np.tile(model.mj.qpos0, (many, 1))
    ctrl, qvel = rng.uniform(-1, 1, (6, many, model.nu)), rng.uniform(-0.3, 0.3, (many, model.nv))
    number = len(range(many)[worlds])
    with simengine.Simulation(model, num_worlds=number, backend="host", dtype=dtype, executor="serial") as sim:
        if mass is not None:
            sim.set_params(body_mass=mass[:, None] * model.mj.body_mass)
        sim.set_state(qpos=start[worlds], qvel=qvel[worlds])
        sim.step(6, ctrl=ctrl[:, worlds])
        sim.forward()
        return [np.array(sim.field(name)) for name in ("qpos", "qvel", *FIELDS)]


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(name, dtype, marks=() if dtype == "float32" or name in IN_DOUBLE else pytest.mark.slow)
        for name in MODELS
        for dtype in ("float32", "float64")
    ],
)
def test_a_world_has_the_same_bits_in_every_batch(name: str | int, dtype: str) -> None:
    model = load(name)
    whole = stepped(model, slice(None), dtype)
    for worlds in (slice(7, 8), slice(3, 6), slice(2, 21), slice(0, 36)):
        for all_worlds, some in zip(whole, stepped(model, worlds, dtype), strict=True):
            np.testing.assert_array_equal(all_worlds[worlds], some)


def test_worlds_with_parameters_of_their_own_move_as_they_do_alone() -> None:
    """One heavier world among others moves as it does alone, and the others move as without it."""
    model = load("ant")
    own = np.ones(20)
    own[4] = 1.25
    mixed, heavy, plain = (
        stepped(model, slice(0, 20), "float32", 20, own),
        stepped(model, slice(4, 5), "float32", 20, own[4:5]),
        stepped(model, slice(0, 20), "float32", 20),
    )
    for among, alone, without in zip(mixed, heavy, plain, strict=True):
        np.testing.assert_array_equal(among[4:5], alone)
        np.testing.assert_array_equal(np.delete(among, 4, 0), np.delete(without, 4, 0))


def test_the_compiler_refuses_a_body_that_branches_on_a_number_of_one_world() -> None:
    kernel = TILED_KERNELS[0]
    source = host_source(kernel)
    branch = "const real moved = qpos[adr] - m.qpos0()[adr];"
    assert branch in source
    with pytest.raises(BackendError, match="one world"):
        host_build.build_library(
            kernel.name, source.replace(branch, f"{branch} if (moved > 0) continue;"), host_build.defines("float32", 1)
        )
