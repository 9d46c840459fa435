"""Contacts of the JAX narrowphase against MuJoCo: the same set, in the same order, with the same frames."""

from __future__ import annotations

from collections import Counter

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from simengine.make_step import initial_state, make_forward
from simengine.model import load_model
from tests.models import ALL, OWN
from tests.oracle import check, coverage, jax_fields, mujoco_fields

FIELDS = ("contact_dist", "contact_pos", "contact_frame")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ALL)
def test_contacts_agree_with_mujoco(name: str, dtype: str) -> None:
    check(name, dtype, FIELDS, float64=1e-8, float32=1e-4)


def test_the_samples_cover_every_pair_type() -> None:
    total: Counter[str] = sum((coverage(name) for name in ALL), Counter())
    pairs = ("plane-sphere", "plane-capsule", "sphere-sphere", "sphere-capsule", "capsule-capsule")
    assert all(total[p] >= 50 for p in pairs), total
    assert total["contacts"] >= 1500 and total["limits"] >= 300 and total["free states"] >= 200, total


def test_contacts_in_the_gap_are_listed_without_rows() -> None:
    fields = jax_fields("contact_parameters", "float64")
    listed = fields["contact_active"].sum()
    with_rows = sum(len(np.unique(f["efc_pos"])) for f in mujoco_fields("contact_parameters"))
    in_gap = sum(
        int((f["contact_dist"] > 0).sum()) for f in mujoco_fields("contact_parameters")
    )
    assert in_gap > 20 and with_rows > 0 and listed > in_gap


def test_frames_are_right_handed_and_orthonormal() -> None:
    for name in OWN:
        frame = jax_fields(name, "float64")["contact_frame"].reshape(-1, 3, 3)
        product = frame @ frame.transpose(0, 2, 1)
        np.testing.assert_allclose(product, np.broadcast_to(np.eye(3), product.shape), atol=1e-12)
        np.testing.assert_allclose(np.linalg.det(frame), 1.0, atol=1e-12)


TWO = """<mujoco><worldbody><body><freejoint/>{}</body><body><freejoint/>{}</body></worldbody></mujoco>"""
BALL, ROD = '<geom size="0.1"/>', '<geom type="capsule" size="0.05 0.2"/>'
SIDEWAYS = (0.7071067811865476, 0.7071067811865476, 0.0, 0.0)


@pytest.mark.parametrize(
    ("first", "second", "pos", "quat"),
    [
        (BALL, BALL, (0, 0, 0), (1, 0, 0, 0)),
        (BALL, BALL, (0, 0, 0), SIDEWAYS),
        (BALL, ROD, (0, 0, 0), (1, 0, 0, 0)),
        (BALL, ROD, (0, 0, 0.25), (1, 0, 0, 0)),
        (ROD, ROD, (0, 0, 0), SIDEWAYS),
        (ROD, ROD, (0.08, 0, 0.1), (1, 0, 0, 0)),
        (ROD, ROD, (0.08, 0, -0.1), (0, 1, 0, 0)),
        (ROD, ROD, (0.08, 0, 0.41), (1, 0, 0, 0)),
        (ROD, ROD, (0.08, 0, 0.1), (1, 2e-5, 0, 0)),
        (ROD, ROD, (0.08, 0, 0.1), (1, 2e-4, 0, 0)),
        (ROD, ROD, (0, 0, 0.45), (1, 0, 0, 0)),
    ],
)
def test_special_positions(first: str, second: str, pos: tuple[float, ...], quat: tuple[float, ...]) -> None:
    """Coincident centres, parallel, collinear, nearly parallel and crossing axes, where the answer needs a rule."""
    mj = mujoco.MjModel.from_xml_string(TWO.format(first, second))
    data = mujoco.MjData(mj)
    data.qpos[7:] = (*pos, *quat)
    mujoco.mj_forward(mj, data)
    assert data.ncon > 0
    model = load_model(mj)
    state = initial_state(model, jnp.float64)._replace(qpos=jnp.asarray(data.qpos))
    fields = make_forward(model)(state, jnp.zeros(0, jnp.float64))
    active = np.asarray(fields["contact_active"])
    assert active.sum() == data.ncon
    for field in FIELDS:
        actual, expected = np.asarray(fields[field])[active], getattr(data.contact, field.removeprefix("contact_"))
        np.testing.assert_allclose(actual, expected, atol=1e-8, err_msg=field)
