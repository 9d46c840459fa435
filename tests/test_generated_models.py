"""Models drawn at random, against MuJoCo: every field of a few states, and a few steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine import Model, UnsupportedModelError, load_model
from simengine.check.compare import compare_forward, compare_steps
from simengine.check.oracle import Evaluation, Oracle
from simengine.check.report import FieldResult
from simengine.check.search import targets
from simengine.check.states import Sampler, State
from simengine.check.trajectory import follow
from tests.drawing import QUICK
from tests.generated import models

CG_SLACK = 20.0
"""Conjugate gradients stop where the cost falls no more, which is at half the digits of the solution."""

PGS_SLACK = 50.0
"""Elliptic PGS cut off at 100 sweeps was off by 2.4e-5 at most in three of 120 models, by 8e-7 after 1000 sweeps."""

ROUNDINGS = 8.0
"""A difference of so many times what rounding the state does is put down to rounding."""

STEPS = 4


@pytest.fixture(scope="module", autouse=True)
def _silence() -> Iterator[None]:
    """MuJoCo does not print what it warns of."""
    mujoco.set_mju_user_warning(lambda _: None)
    yield
    mujoco.set_mju_user_warning(None)


def states(model: Model, sampler: Sampler) -> list[State]:
    """States at random, thrown into each other and beyond limits."""
    wanted = targets(model)
    pairs = [pair for found in wanted.pairs.values() for pair in found.tolist()]
    thrown = [sampler.thrown(*pair) for pair in sampler.rng.permutation(pairs)[:3].tolist()] if pairs else []
    beyond = [sampler.beyond(*limit) for limit in sampler.rng.permutation(wanted.limits)[:2].tolist()]
    return [*(sampler.random() for _ in range(2)), *thrown, *beyond]


def compiled(text: str) -> mujoco.MjModel | None:
    """The model, or None if MuJoCo does not accept it."""
    try:
        return mujoco.MjModel.from_xml_string(text)
    except ValueError:
        return None


def wrong_fields(text: str, seed: int, backend: str, dtype: str) -> list[FieldResult] | None:
    """What disagrees with MuJoCo; None where there is nothing to compare, or a feature is missing."""
    mj = compiled(text)
    if mj is None or mj.nv == 0:
        return None
    try:
        model = load_model(mj)
    except UnsupportedModelError:
        return None
    oracle, sampler = Oracle(mj), Sampler(mj, seed)
    evaluations = [e for e in map(oracle.evaluate, states(model, sampler)) if e is not None and sane(e)]
    results = compare_forward(model, oracle, evaluations, backend, dtype) if evaluations else []
    steps = follow(oracle, sampler, STEPS)
    if steps.touched:
        results += compare_steps(model, oracle, steps, backend, dtype)
    slack = slack_of(mj)
    return [r for r in results if not r.relative <= slack * r.tolerance and not is_rounding(r)] if results else None


def slack_of(mj: mujoco.MjModel) -> float:
    """By how much a solver that stops before the optimum may miss the tolerance."""
    if mj.opt.solver == mujoco.mjtSolver.mjSOL_CG:
        return CG_SLACK
    elliptic = mj.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
    return PGS_SLACK if elliptic and mj.opt.solver == mujoco.mjtSolver.mjSOL_PGS else 1.0


def is_rounding(result: FieldResult) -> bool:
    """Whether rounding the worst state does the same to MuJoCo's own result; the states are few, and some are wild."""
    return result.rounding is not None and result.relative <= ROUNDINGS * result.rounding


def sane(evaluation: Evaluation) -> bool:
    """Whether the state has a result that can be compared: contacts that can move nothing have no definite force."""
    qacc, hardest = evaluation.fields["qacc"], evaluation.fields["efc_D"].max(initial=0.0)
    return bool(np.isfinite(qacc).all() and np.abs(qacc).max() < 1e6 and hardest < 1e8)


def compare(how: settings, backend: str, dtype: str) -> None:
    """Draw models and compare each; most must be worth it."""
    count: Counter[str] = Counter()

    @how
    @given(models(), st.integers(0, 3))
    def each(text: str, seed: int) -> None:
        wrong = wrong_fields(text, seed, backend, dtype)
        count["drawn"] += 1
        count["compared"] += wrong is not None
        shown = [
            f"{r.stage}.{r.field}: {r.relative:.3g} > {r.tolerance:g} in state {r.worst_state}" for r in wrong or ()
        ]
        assert not wrong, "\n".join((*shown, text))

    each()
    assert count["compared"] > 0.7 * count["drawn"], count


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_generated_models_agree_with_mujoco(dtype: str) -> None:
    compare(QUICK, "host", dtype)


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "number"), [("float64", 150), ("float32", 50)])
def test_many_generated_models_agree_with_mujoco(dtype: str, number: int) -> None:
    compare(settings(QUICK, max_examples=number), "host", dtype)


@pytest.mark.slow
def test_the_jax_forms_of_generated_models_agree_with_mujoco() -> None:
    compare(settings(QUICK, max_examples=3), "jax", "float64")
