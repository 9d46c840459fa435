"""The feature table in the docs agrees with the support check, and MuJoCo compiles the models that probe it."""

from __future__ import annotations

import mujoco
import pytest

from benchmarks.features.engines import refusal
from benchmarks.features.probes import PROBES, Probe, model
from benchmarks.features.refused import REFUSED
from benchmarks.features.table import PAGE, page, refused
from simengine import ModelError


def test_the_page_in_the_docs_is_current() -> None:
    assert page() == PAGE.read_text(), "run: python -m benchmarks.features table"


@pytest.mark.parametrize("probe", PROBES, ids=lambda p: f"{p.group}/{p.feature}")
def test_a_probe_compiles_and_is_not_the_bare_model(probe: Probe) -> None:
    mujoco.MjModel.from_xml_string(probe.mjcf)
    assert probe.mjcf != model()


@pytest.mark.parametrize("feature", REFUSED)
def test_what_the_page_says_is_refused_compiles_and_is_refused(feature: str) -> None:
    mujoco.MjModel.from_xml_string(REFUSED[feature])
    assert refused(REFUSED[feature])


def test_the_bare_model_is_not_refused() -> None:
    assert refused(model()) == ()


def test_a_refusal_carries_the_loaders_words() -> None:
    def load(mj: mujoco.MjModel) -> None:
        raise ModelError(f"no room for\n {mj.nbody} bodies")

    assert refusal(load, model()) == "ModelError: no room for 3 bodies"
    assert refusal(lambda mj: None, model()) == ""
