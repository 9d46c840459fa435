"""Kinematics, inertia, velocities, bias, passive and actuator forces, smooth acceleration: JAX against MuJoCo."""

from __future__ import annotations

from functools import partial

import jax
import numpy as np
import pytest

from tests.helpers.oracle import check, jax_fields, mujoco_fields, oracle_model, sample, strictly
from tests.models import COMPILED_IN_JAX, SOME_IN_DOUBLE_FEW_IN_SINGLE

STAGES = {
    "kinematics": ("xpos", "xquat", "xmat", "xipos", "ximat", "xanchor", "xaxis", "geom_xpos", "geom_xmat"),
    "com_pos": ("subtree_com", "cinert", "cdof"),
    "crb": ("crb", "qM"),
    "com_vel": ("cvel", "cdof_dot"),
    "passive": ("qfrc_passive",),
    "fluid": ("qfrc_fluid",),
    "rne": ("qfrc_bias",),
    "actuation": ("actuator_force", "qfrc_actuator"),
    "acceleration": ("qfrc_smooth", "qacc_smooth"),
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(("name", "dtype"), SOME_IN_DOUBLE_FEW_IN_SINGLE)
def test_fields_agree_with_mujoco(name: str, dtype: str, stage: str) -> None:
    check(name, dtype, STAGES[stage], float64=1e-9, float32=5e-5)


def test_no_field_of_sensors_and_tendons_leaves_single_precision() -> None:
    """The types alone, of a model that takes long to compile."""
    assert strictly(lambda forward: partial(jax.eval_shape, forward), "tendons", "float32")


@pytest.mark.parametrize("name", COMPILED_IN_JAX)
def test_factor_is_lower_and_reproduces_the_mass_matrix(name: str) -> None:
    factors = jax_fields(name, "float64")["qLD"]
    assert (np.triu(factors, 1) == 0).all()
    for factor, fields in zip(factors, mujoco_fields(name), strict=True):
        np.testing.assert_allclose(factor @ factor.T, fields["qM"], rtol=0, atol=1e-12 * np.abs(fields["qM"]).max())


def test_the_sample_exercises_every_term() -> None:
    mj, _ = oracle_model("mixed_tree")
    states, fields = sample("mixed_tree"), mujoco_fields("mixed_tree")
    force = np.stack([f["actuator_force"] for f in fields])
    qfrc = np.stack([f["qfrc_actuator"] for f in fields])
    limited = np.flatnonzero(mj.actuator_forcelimited)
    assert (force[:, limited] == mj.actuator_forcerange[limited][:, 0]).any(), "no actuator force was clamped"
    assert (np.abs(states.ctrl[:, 0]) > 0.6).any(), "no control was clamped"
    dof = mj.jnt_dofadr[np.flatnonzero(mj.jnt_actfrclimited)]
    assert np.isin(qfrc[:, dof], mj.jnt_actfrcrange).any(), "no joint force was clamped"
    assert (mj.jnt_stiffness > 0).sum() >= 3
    assert (mj.dof_damping > 0).sum() >= 4
    assert (mj.dof_armature > 0).sum() >= 2
    assert set(mj.jnt_type) == {0, 2, 3}
