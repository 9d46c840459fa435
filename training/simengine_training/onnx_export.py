"""Writes a policy as an ONNX model, which runs wherever an ONNX runtime does.

    write_onnx(NumpyPolicy.load("out/ant"), "policy.onnx")

The model has one input, `observation` (n, observations) float32, as the environment gives it, and one output, `action`
(n, actions) float32, within the limits of the action space; n is free. Everything between lies in the graph: the
normalisation of observations, the layers, and the scaling of actions. All numbers are float32.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from simengine_training.errors import MissingExtraError
from simengine_training.numpy_policy import NumpyPolicy

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ModuleNotFoundError as error:
    raise MissingExtraError(
        f"an ONNX file needs the package {(error.name or '').partition('.')[0]!r}, which is not installed; install it "
        "with: pip install 'simengine[onnx]'"
    ) from error

OPSET, IR = 17, 8  # of 2022: runtimes of robots are seldom the newest
_PLAIN = {"elu": "Elu", "relu": "Relu", "tanh": "Tanh"}  # activations that are operators of ONNX


class _Graph:
    """Nodes and constants of a model, in order."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, value: Any) -> str:
        """Add a float32 constant and return its name."""
        self.constants.append(numpy_helper.from_array(np.asarray(value, np.float32), name))
        return name

    def apply(self, operator: str, *inputs: str, to: str = "") -> str:
        """Add a node with one output, and return the output's name."""
        output = to or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], name=f"make_{output}"))
        return output


def write_onnx(policy: NumpyPolicy, path: str | Path) -> None:
    """Write a policy as an ONNX model. The id of its environment is in the metadata, as `environment`.

    Args:
        policy: the policy.
        path: the file.

    Raises:
        ValueError: ONNX has no such activation function.
    """
    graph = _Graph()
    last = _actions(policy, graph, _layers(policy, graph, _normalised(policy, graph, "observation")))
    shapes = {"observation": ["n", policy.mean.size], last: ["n", policy.low.size]}
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    made = helper.make_graph(graph.nodes, "policy", ends[:1], ends[1:], graph.constants)
    model = helper.make_model(
        made, producer_name="simengine", opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR
    )
    helper.set_model_props(model, {"environment": policy.environment})
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, str(path))


def _normalised(policy: NumpyPolicy, graph: _Graph, x: str) -> str:
    x = graph.apply("Sub", x, graph.constant("mean", policy.mean))
    x = graph.apply("Div", x, graph.constant("deviation", policy.deviation))
    limits = graph.constant("lowest", -policy.limit), graph.constant("highest", policy.limit)
    return graph.apply("Clip", x, *limits)


def _layers(policy: NumpyPolicy, graph: _Graph, x: str) -> str:
    for k, (weights, biases) in enumerate(zip(policy.weights, policy.biases, strict=True)):
        x = graph.apply("Gemm", x, graph.constant(f"weights_{k}", weights), graph.constant(f"biases_{k}", biases))
        if k + 1 < len(policy.weights):
            x = _activated(policy.activation, graph, x)
    return x


def _activated(name: str, graph: _Graph, x: str) -> str:
    if name in _PLAIN:
        return graph.apply(_PLAIN[name], x)
    if name == "silu":
        return graph.apply("Mul", x, graph.apply("Sigmoid", x))
    raise ValueError(f"activation {name!r} has no form in ONNX here; use one of {', '.join((*_PLAIN, 'silu'))}")


def _actions(policy: NumpyPolicy, graph: _Graph, x: str) -> str:
    low, high = policy.low.astype(np.float64), policy.high.astype(np.float64)
    x = graph.apply("Mul", x, graph.constant("half", (high - low) / 2))
    x = graph.apply("Add", x, graph.constant("middle", (high + low) / 2))
    x = graph.apply("Max", x, graph.constant("low", low))
    return graph.apply("Min", x, graph.constant("high", high), to="action")
