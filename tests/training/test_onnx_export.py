"""Policies as ONNX models."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simengine_training.numpy_policy import ACTIVATIONS, NumpyPolicy

onnx: Any = pytest.importorskip("onnx")


def policy(activation: str, sizes: tuple[int, ...] = (9, 32, 16, 3)) -> NumpyPolicy:
    """A policy with random weights, whose actions often reach their limits."""
    draw = np.random.default_rng(5)
    return NumpyPolicy(
        environment="simengine/Hopper-v5",
        mean=draw.normal(size=sizes[0]),
        deviation=draw.uniform(0.3, 3, sizes[0]),
        limit=2.0,
        activation=activation,
        weights=tuple(draw.normal(size=pair, scale=pair[0] ** -0.5).astype(np.float32) for pair in pairwise(sizes)),
        biases=tuple(draw.normal(size=size, scale=0.3).astype(np.float32) for size in sizes[1:]),
        low=np.array([-1.0, -0.4, 2.0]),
        high=np.array([1.0, 0.1, 9.0]),
    )


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_a_runtime_takes_the_same_actions(activation: str, tmp_path: Path) -> None:
    runtime: Any = pytest.importorskip("onnxruntime")
    from simengine_training.onnx_export import write_onnx

    taken, file = policy(activation), tmp_path / "policy.onnx"
    write_onnx(taken, file)
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    observations = (np.random.default_rng(6).normal(size=(50, 9)) * 5).astype(np.float32)
    for batch in (observations, observations[:1]):
        (actions,) = session.run(["action"], {"observation": batch})
        assert actions.dtype == np.float32
        np.testing.assert_allclose(actions, taken(batch), rtol=0, atol=1e-5)
    (actions,) = session.run(None, {"observation": observations})
    inside = (actions > taken.low + 1e-6) & (actions < taken.high - 1e-6)
    assert inside.any(axis=0).all()
    assert not inside.all()  # some were clipped


def test_the_model_says_what_it_is(tmp_path: Path) -> None:
    from simengine_training.onnx_export import write_onnx

    write_onnx(policy("silu", (9, 3)), tmp_path / "policy.onnx")
    model = onnx.load(str(tmp_path / "policy.onnx"))
    onnx.checker.check_model(model, full_check=True)
    ends = [(end.name, end.type.tensor_type.shape.dim) for end in (*model.graph.input, *model.graph.output)]
    assert [name for name, _ in ends] == ["observation", "action"]
    assert [(batch.dim_param, size.dim_value) for _, (batch, size) in ends] == [("n", 9), ("n", 3)]
    assert {prop.key: prop.value for prop in model.metadata_props} == {"environment": "simengine/Hopper-v5"}


def test_an_activation_without_a_form_is_named(tmp_path: Path) -> None:
    from simengine_training.onnx_export import write_onnx

    with pytest.raises(
        ValueError, match="activation 'gelu' has no form in ONNX here; use one of elu, relu, tanh, silu"
    ):
        write_onnx(replace(policy("tanh"), activation="gelu"), tmp_path / "policy.onnx")
