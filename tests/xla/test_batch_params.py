"""Fields that follow from parameters of many worlds: those of `make_params`, in the worlds of a mask."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simengine
from simengine import make_batch_params
from simengine.model.model import table_of
from simengine.model.params import MASSES, WorldParameters
from tests.models import compile_model

WORLDS = 7
MODELS = ("ant", "humanoid", "pusher", "tendons", "cartpole", "piston")
# A body that only slides along its principal axes, one on a ball joint, and a free one.
PISTON = """
<mujoco>
  <worldbody>
    <body><joint type="slide" axis="0 0 1"/><geom size="0.1" mass="2"/></body>
    <body pos="1 0 0"><joint type="ball"/><geom type="capsule" size="0.05 0.2" pos="0.1 0 0.3"/>
      <body pos="0 0 0.6"><joint axis="0 1 0" armature="0.01"/><geom type="box" size="0.1 0.05 0.2"/></body></body>
    <body pos="2 0 0"><freejoint/><geom type="box" size="0.1 0.2 0.3"/></body>
  </worldbody>
</mujoco>
"""


def model_of(name: str) -> simengine.Model:
    if name == "piston":
        return simengine.load_model(PISTON)
    return simengine.load_model(compile_model(name) if name == "tendons" else name)


def scaled(model: simengine.Model, names: tuple[str, ...], dtype: str) -> dict[str, jax.Array]:
    """Parameters of worlds, around the model's own."""
    rng, meaning = np.random.default_rng(0), WorldParameters(table_of(model))
    defaults = {name: meaning.default(name) for name in names}
    return {k: jnp.asarray(rng.uniform(0.8, 1.25, (WORLDS, *v.shape)) * v, dtype) for k, v in defaults.items()}


QUICK = (("ant", MASSES), ("cartpole", ("dof_armature", "geom_friction")))


@pytest.mark.parametrize(
    ("name", "names"),
    [
        pytest.param(name, names, id=f"{name}-{len(names)}", marks=[] if (name, names) in QUICK else pytest.mark.slow)
        for name in MODELS
        for names in (MASSES, ("body_mass",), ("dof_armature", "geom_friction"))
    ],
)
def test_fields_are_those_of_make_params(name: str, names: tuple[str, ...]) -> None:
    model = model_of(name)
    given, mask = scaled(model, names, "float64"), jnp.arange(WORLDS) % 3 != 1
    found = jax.jit(make_batch_params(model, "host"))(given, mask, {})
    expected = jax.vmap(lambda own: simengine.make_params(model, **own))(given)
    for field, values in found.items():
        assert values.shape == expected[field].shape
        chosen = np.asarray(expected[field]).reshape(WORLDS, -1)[mask]
        np.testing.assert_allclose(np.reshape(values, (WORLDS, -1))[mask], chosen, rtol=1e-9, atol=1e-12, err_msg=field)
    assert not found["body_invweight0"][~mask].any()
    assert found.keys() == expected.keys()


def test_bits_do_not_depend_on_other_worlds() -> None:
    model = model_of("humanoid")
    given = scaled(model, MASSES, "float32")
    fields = jax.jit(make_batch_params(model, "host"))
    whole = fields(given, jnp.ones(WORLDS, bool), {})
    for world in range(WORLDS):
        alone = fields({name: value[world : world + 1] for name, value in given.items()}, jnp.ones(1, bool), {})
        one = fields(given, jnp.arange(WORLDS) == world, {})
        for name in ("body_invweight0", "dof_invweight0", "tendon_invweight0", "stat_meaninertia"):
            np.testing.assert_array_equal(alone[name][0], whole[name][world])
            np.testing.assert_array_equal(one[name][world], whole[name][world])


def test_masses_that_worlds_have_already_stay() -> None:
    model = model_of("ant")
    first, then = scaled(model, ("body_inertia", "dof_armature"), "float64"), scaled(model, ("body_mass",), "float64")
    fields, every = make_batch_params(model, "host"), jnp.ones(WORLDS, bool)
    known = fields(first, every, {})
    found = fields(then, every, known)
    expected: Any = fields({**first, **then}, every, {})
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def test_worlds_of_a_vmap_are_more_worlds() -> None:
    model = model_of("ant")
    given = scaled(model, ("body_mass",), "float64")
    fields, every = make_batch_params(model, "host"), jnp.ones(WORLDS, bool)
    whole = fields(given, every, {})
    split = jax.vmap(lambda mass: fields({"body_mass": mass[None]}, every[:1], {}))(given["body_mass"])
    np.testing.assert_array_equal(split["dof_invweight0"][:, 0], whole["dof_invweight0"])
