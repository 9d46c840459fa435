"""Contacts of the JAX narrowphase against MuJoCo: the same set, in the same order, with the same frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from simengine.model import ModelTable, load_table
from simengine.physics.collision.narrowphase_jax import narrowphase
from simengine.physics.constraints.row_layout_jax import row_layout
from simengine.physics.kinematics.kinematics_jax import kinematics
from tests.helpers.oracle import COMMON_PAIRS, check, coverage, jax_fields, oracle_model, quick_jit
from tests.models import COMPILED_IN_JAX, SOME_IN_DOUBLE_FEW_IN_SINGLE
from tests.stages.special_positions import SPECIAL

FIELDS = ("contact_dist", "contact_pos", "contact_frame")


@pytest.mark.parametrize(("name", "dtype"), SOME_IN_DOUBLE_FEW_IN_SINGLE)
def test_contacts_agree_with_mujoco(name: str, dtype: str) -> None:
    check(name, dtype, FIELDS, float64=1e-8, float32=1e-4)


def test_the_samples_cover_every_pair_type() -> None:
    total: Counter[str] = sum((coverage(name) for name in COMPILED_IN_JAX), Counter())
    assert all(total[p] >= 30 for p in COMMON_PAIRS), total
    assert total["contacts"] >= 1500, total
    assert total["limits"] >= 300, total
    assert total["free states"] >= 200, total


def test_contacts_in_the_gap_are_listed_without_rows() -> None:
    _, model = oracle_model("contact_parameters")
    fields = jax_fields("contact_parameters", "float64")
    outside = fields["contact_dist"] >= model.cand_margin[model.slot_cand]
    in_gap = fields["contact_active"] & outside
    assert in_gap.sum() == coverage("contact_parameters")["in gap"] >= 20
    rows_of = row_layout(model).contact_slot
    has_rows = fields["efc_active"][:, -rows_of.size :]
    assert not (has_rows & in_gap[:, rows_of]).any()


def test_frames_are_right_handed_and_orthonormal() -> None:
    for name in COMPILED_IN_JAX:
        frame = jax_fields(name, "float64")["contact_frame"].reshape(-1, 3, 3)
        product = frame @ frame.transpose(0, 2, 1)
        np.testing.assert_allclose(product, np.broadcast_to(np.eye(3), product.shape), atol=1e-12)
        np.testing.assert_allclose(np.linalg.det(frame), 1.0, atol=1e-12)


TWO = """<mujoco><worldbody><body><freejoint/>{}</body><body><freejoint/>{}</body></worldbody></mujoco>"""
SLAB, CUBE = '<geom type="box" size="0.3 0.4 0.1"/>', '<geom type="box" size="0.1 0.1 0.1"/>'
TURNED = (0.9238795325112867, 0.0, 0.0, 0.3826834323650898)  # an eighth about z
OVER = 0.3 - 0.1 * 2**0.5  # from which one corner of the cube is beyond the slab


@cache
def contacts_of(first: str, second: str) -> tuple[mujoco.MjModel, Callable[[jax.Array], tuple[jax.Array, ...]]]:
    mj = mujoco.MjModel.from_xml_string(TWO.format(first, second))
    model: ModelTable = load_table(mj)

    def contacts(qpos: jax.Array) -> tuple[jax.Array, ...]:
        *_, geom_xpos, geom_xmat = kinematics(model, qpos, jnp.zeros((0, 3)), jnp.zeros((0, 4)))
        return narrowphase(model, geom_xpos, geom_xmat)

    return mj, quick_jit(contacts)


@pytest.mark.parametrize(
    ("first", "second", "pos", "quat"),
    [
        *SPECIAL,
        (SLAB, CUBE, (OVER + 1e-8, 0.2, 0.19), TURNED),
        (SLAB, CUBE, (OVER + 1e-6, 0.2, 0.19), TURNED),
    ],
)
def test_special_positions(first: str, second: str, pos: tuple[float, ...], quat: tuple[float, ...]) -> None:
    """Coincident centres, parallel, collinear, nearly parallel and crossing axes, corners just beyond a side, where
    the answer needs a rule."""
    mj, contacts = contacts_of(first, second)
    data = mujoco.MjData(mj)
    data.qpos[7:] = (*pos, *quat)
    mujoco.mj_forward(mj, data)
    assert data.ncon > 0
    *ours, active = (np.asarray(x) for x in contacts(jnp.asarray(data.qpos)))
    assert active.sum() == data.ncon
    for name, actual in zip(("dist", "pos", "frame"), ours, strict=True):
        np.testing.assert_allclose(actual[active], getattr(data.contact, name), atol=1e-8, err_msg=name)
