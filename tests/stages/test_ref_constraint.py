"""Constraint rows, the solver and cfrc_ext: JAX against MuJoCo."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simengine.physics.constraints.row_layout_jax import row_layout
from simengine.physics.solvers.solve_newton_unilateral_jax import solve_newton_unilateral
from tests.helpers.oracle import check, coverage, jax_fields, oracle_model, quick_jit
from tests.models import COMPILED_IN_JAX, SOME_IN_DOUBLE_FEW_IN_SINGLE

ROWS = ("efc_J", "efc_pos", "efc_margin", "efc_D", "efc_aref")
SOLUTION = ("qacc", "efc_force", "qfrc_constraint", "cfrc_ext")


@pytest.mark.parametrize(("name", "dtype"), SOME_IN_DOUBLE_FEW_IN_SINGLE)
def test_rows_agree_with_mujoco(name: str, dtype: str) -> None:
    check(name, dtype, ROWS, float64=1e-8, float32=2e-4)


@pytest.mark.parametrize(("name", "dtype"), SOME_IN_DOUBLE_FEW_IN_SINGLE)
def test_solution_agrees_with_mujoco(name: str, dtype: str) -> None:
    check(name, dtype, SOLUTION, float64=1e-6, float32=2e-3)


@pytest.mark.parametrize("name", ["mixed_tree", "contact_parameters", "ant", "half_cheetah"])
def test_limits_are_covered(name: str) -> None:
    assert coverage(name)["limits"] >= 20


@pytest.mark.parametrize("name", COMPILED_IN_JAX)
def test_inactive_rows_are_zero(name: str) -> None:
    _, model = oracle_model(name)
    fields = jax_fields(name, "float64")
    off = ~fields["efc_active"]
    assert fields["efc_active"].shape[1] == model.nefc_max
    for field in (*ROWS, "efc_force"):
        assert (fields[field][off] == 0).all(), field


def test_row_layout_orders_limits_before_contacts() -> None:
    _, model = oracle_model("pile")
    layout = row_layout(model)
    counts = np.bincount(layout.contact_slot, minlength=model.nslot)
    assert set(counts) == {1, 4}
    assert layout.limit_id.size == 0
    assert layout.contact_slot.size == model.nefc_max
    assert (np.diff(layout.contact_slot) >= 0).all()


@pytest.mark.parametrize("start", ["far", "solution"])
def test_the_solution_does_not_depend_on_the_warm_start(start: str) -> None:
    _, model = oracle_model("pile")
    fields = {k: jnp.asarray(v) for k, v in jax_fields("pile", "float64").items()}
    names = ("qM", "qfrc_smooth", "qacc_smooth", "efc_active", "efc_J", "efc_D", "efc_aref")
    qM, smooth, qacc_smooth, *rows = (fields[n] for n in names)
    warm = fields["qacc"] if start == "solution" else 1e3 * jnp.ones_like(qacc_smooth)
    qacc, _, _ = quick_jit(jax.vmap(lambda *a: solve_newton_unilateral(model, *a)))(
        qM, smooth, qacc_smooth, warm, *rows
    )
    np.testing.assert_allclose(qacc, fields["qacc"], atol=1e-8 * float(jnp.abs(fields["qacc"]).max()))


def test_the_solution_satisfies_the_optimality_condition() -> None:
    """M qacc - qfrc_smooth - J' f = 0 with f >= 0, f = 0 where J qacc > aref, of rows that only push."""
    for name in (n for n in COMPILED_IN_JAX if oracle_model(n)[1].solver == "solve_newton_unilateral"):
        f = jax_fields(name, "float64")
        force = f["efc_force"]
        residual = np.einsum("nij,nj->ni", f["qM"], f["qacc"]) - f["qfrc_smooth"] - f["qfrc_constraint"]
        scale = 1.0 + np.abs(f["qfrc_constraint"]).max(axis=1, initial=0.0)
        assert (np.abs(residual).max(axis=1) / scale).max() < 1e-9, name
        jar = np.einsum("nij,nj->ni", f["efc_J"], f["qacc"]) - f["efc_aref"]
        assert (force >= 0).all(), name
        assert (force[jar > 1e-9] == 0).all(), name
