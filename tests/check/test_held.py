"""MuJoCo's forward dynamics with inputs rounded to a precision, which shows how ill-conditioned a model is."""

from __future__ import annotations

import re

import mujoco
import numpy as np
import pytest

from simengine import available_backends, check_model, load_model
from simengine.check.held import Terms, Unit, forward_with_rounded
from simengine.check.oracle import Oracle, collect, dense_jacobian
from simengine.check.states import Sampler
from tests.helpers.checkout import ROOT
from tests.models import OWN, gymnasium_path

needs_host = pytest.mark.skipif(bool(available_backends()["host"]), reason="needs a C++ compiler")
LINKS = 20


class Still(Unit):
    """Moves nothing."""

    def __init__(self) -> None:
        super().__init__("float64", np.random.default_rng(0), 0.0)


@pytest.mark.parametrize("source", [OWN["tendons"], OWN["linkage"], OWN["dual"], gymnasium_path("humanoid")])
def test_with_nothing_moved_it_is_mujocos_own(source: str) -> None:
    mj = load_model(source).mj
    mj.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    sampler, oracle, data = Sampler(mj, 0), Oracle(mj), mujoco.MjData(mj)
    for _ in range(5):
        state = sampler.random()
        oracle.forward(state)
        expected = collect(mj, oracle.data)
        terms = Terms.of(oracle.data, dense_jacobian(mj, oracle.data))
        state.put_into(mj, oracle.data)
        assert forward_with_rounded(mj, oracle.data, terms, Still())
        oracle.complete()
        for name, values in collect(mj, oracle.data).items():
            np.testing.assert_array_equal(values, expected[name], err_msg=name)
        state.put_into(mj, data)
        assert forward_with_rounded(mj, data, terms, Unit("float32", np.random.default_rng(0)))
        assert np.abs(data.qacc - expected["qacc"]).max() > 0


def test_numbers_move_by_units_in_the_last_place() -> None:
    values = np.array([[1.0, -3.0], [0.0, 1e6]])
    moved = Unit("float32", np.random.default_rng(0), 2.0).moved(values) - values
    np.testing.assert_array_equal(np.abs(moved), 2 * np.spacing(np.abs(values).astype(np.float32)).astype(float))
    of_size = Unit("float64", np.random.default_rng(0)).moved(values, np.full((2, 2), 1e9)) - values
    np.testing.assert_allclose(np.abs(of_size), 2.0**-23, rtol=1e-2)
    often = Unit("float32", np.random.default_rng(0)).moved(values, often=np.array([4.0, 0.0])) - values
    np.testing.assert_array_equal(often[1], 0.0)
    np.testing.assert_array_equal(np.abs(often[0]), 2 * np.spacing(np.abs(values[0]).astype(np.float32)).astype(float))


def test_parts_of_units_move_the_difference_of_large_numbers_by_less_than_a_unit() -> None:
    pairs, unit = np.full((100, 2), 1500.0), float(np.spacing(np.float32(1500)))
    for parts in (False, True):
        moved = Unit("float32", np.random.default_rng(0), parts=parts).moved(pairs)
        assert np.abs(moved - pairs).max() <= unit
        across = np.abs(moved[:, 0] - moved[:, 1]) / unit
        assert ((across > 0.1) & (across < 1)).any() == parts


@pytest.mark.parametrize(("noslip", "moves"), [(0, False), (3, True)])
def test_large_forces_that_balance_move_accelerations_where_they_make_these(noslip: int, moves: bool) -> None:
    """A sphere of 2 g, held by 1.6e5 N from below and above: in float32 a unit of these is 0.02 N, or 8 m/s^2."""
    plane = '<geom type="plane" size="1 1 1" pos="0 0 {}" quat="{}"/>'.format
    mj = mujoco.MjModel.from_xml_string(
        f'<mujoco><option noslip_iterations="{noslip}" cone="elliptic"/><default><geom solref="-4e7 -1e2" condim="1"/>'
        f"</default><worldbody>{plane(-0.05, '1 0 0 0')}{plane(0.05, '0 1 0 0')}"
        '<body><freejoint/><geom size="0.15" mass="0.002"/></body></worldbody></mujoco>'
    )
    mj.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    data, accelerations = mujoco.MjData(mj), []
    for draw in range(8):
        mujoco.mj_resetData(mj, data)
        mujoco.mj_forward(mj, data)
        assert data.efc_force.min() > 1e5
        terms = Terms.of(data, dense_jacobian(mj, data))
        mujoco.mj_resetData(mj, data)
        assert forward_with_rounded(mj, data, terms, Unit("float32", np.random.default_rng(draw)))
        accelerations.append(data.qacc[2])
    assert (np.ptp(accelerations) > 5) == moves, accelerations


def chain() -> str:
    """Free links in a row: the inertia matrix is nearly singular, so its rounding alone changes accelerations much."""
    root = '<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>'
    link = '<joint axis="0 0 1"/><geom type="capsule" fromto="0 0 0 0.1 0 0" size="0.02" contype="0" conaffinity="0"/>'
    bodies = "".join(f'<body pos="{0.1 * (k > 0)} 0 0">{"" if k else root}{link}' for k in range(LINKS))
    return f"<mujoco><worldbody>{bodies}{'</body>' * LINKS}</worldbody></mujoco>"


@pytest.mark.slow
@needs_host
def test_a_long_chain_is_ill_conditioned_in_float32_and_a_wrong_one_is_wrong() -> None:
    options = {"backend": "host", "dtype": "float32", "num_states": 20, "num_steps": 20}
    model = load_model(chain())
    report = check_model(model, **options)
    assert report.passed, report.verdict()
    smooth = next(result for result in report.fields if result.field == "qacc_smooth")
    assert smooth.ill_conditioned > smooth.states
    model.table.arrays["dof_armature"] = np.asarray(model.table.arrays["dof_armature"]) + 1e-6
    report = check_model(model, **options)
    assert "qacc_smooth" in {result.field for result in report.failures}


@needs_host
def test_a_pole_that_lies_on_the_floor_holds() -> None:
    """An entry of its orientation is near zero, and rounded as the products of large ones that it is the sum of."""
    (cart,) = re.findall(r"<mujoco.*</mujoco>", (ROOT / "docs/guide/models.md").read_text(encoding="utf-8"), re.DOTALL)
    report = check_model(cart, backend="host", dtype="float32", seed=0)
    assert report.passed, report.fields
