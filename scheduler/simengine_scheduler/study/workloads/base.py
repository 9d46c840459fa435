"""What every workload offers, and what the networks share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ...core.calls import Emitter
from ...core.errors import choose_one
from ...core.segments import Segments
from ...executors.base import Executor
from ...tracing.trace import Trace
from .targets import Target


class Workload(Protocol):
    """A list of kernels that runs step after step. Its memory shows whether kernels ran in a legal order.

    Attributes:
        name: shown in reports.
        units: how many worlds, images or the like a step advances.
        segments: the table of its calls.
        options: options of `make_executor` that its executors need.
        in_turns: whether `rewind` brings back the same lists, so that executors may take turns at no cost.
        period: steps after which the same happens again. A repeat of so many steps, or a multiple, is like the next.
    """

    name: str
    units: int
    segments: Segments
    options: dict[str, Any]
    in_turns: bool
    period: int

    def emitters(self) -> Sequence[Emitter]:
        """Return new emitters of one step."""
        ...

    def run(self, executor: Executor, steps: int) -> Trace:
        """Issue steps through an executor. Returns the trace of the last run."""
        ...

    def reset(self) -> None:
        """Restore the memory with which the workload starts."""
        ...

    def rewind(self, executor: Executor, steps: int) -> None:
        """Restore the memory with which the step after the first `steps` steps begins, with all that it reads."""
        ...

    def state(self) -> bytes:
        """Return the memory that steps change, once all steps are done."""
        ...

    def close(self) -> None:
        """Free what the workload holds."""
        ...


FORMS = ("varying", "fixed")


def check_form(form: str) -> str:
    """Return the form of a network's lists. Raises ValueError unless it is "varying" or "fixed"."""
    if form not in FORMS:
        raise ValueError(f"unknown form {form!r}; {choose_one(form, FORMS)}")
    return form


class Memory:
    """Arrays of a network: constants, and fields, which steps change and `reset` restores."""

    def __init__(self, target: Target, segments: Segments) -> None:
        self.target = target
        self.segments = segments
        self._fields: dict[str, tuple[Any, np.ndarray]] = {}

    def constant(self, values: np.ndarray) -> Any:
        """Return an array that no kernel writes, and which therefore has no segment."""
        return self.target.array(values)

    def weights(self, rng: np.random.Generator, *shape: int, fan_in: int) -> Any:
        """Return random weights under which rectified sums neither grow nor shrink (He et al. 2015)."""
        return self.constant((rng.standard_normal(shape) * np.sqrt(2.0 / fan_in)).astype(np.float32))

    def layer(self, rng: np.random.Generator, inputs: int, outputs: int) -> tuple[Any, Any]:
        """Return weights (inputs, outputs) and small biases (outputs,) of a dense layer."""
        return self.weights(rng, inputs, outputs, fan_in=inputs), self.weights(rng, outputs, fan_in=100 * inputs)

    def field(self, name: str, values: np.ndarray) -> Any:
        """Return an array that starts with these values."""
        array = self.target.array(values)
        self._fields[name] = array, values
        return array

    def segment(self, name: str, member: tuple[str, int] | None = None) -> int:
        """Return the id of a field, or of a member of one of its partitions. Raises KeyError if there is no field."""
        if name not in self._fields:
            raise KeyError(f"the workload has no field {name!r}")
        return self.segments.intern(name, 0, member)

    def reset(self) -> None:
        """Restore every field."""
        for array, values in self._fields.values():
            self.target.fill(array, values)

    def on_host(self) -> dict[str, np.ndarray]:
        """Return a copy of every field by name, once all issued work is done."""
        return {name: self.target.to_host(array) for name, (array, _) in self._fields.items()}


class Network:
    """What the networks share. A step is one run of the executor."""

    in_turns = True
    period = 1

    def __init__(self, name: str, target: Target, units: int) -> None:
        self.name = name
        self.units = units
        self.segments = Segments()
        self.options = dict(target.options)
        self.target = target
        self.memory = Memory(target, self.segments)

    def emitters(self) -> Sequence[Emitter]:
        """Return new emitters of one step."""
        raise NotImplementedError

    def run(self, executor: Executor, steps: int) -> Trace:
        """Run steps, each as one run of the executor. Raises ValueError for less than one step."""
        if steps < 1:
            raise ValueError(f"workload {self.name!r} was told to run {steps} steps; give at least 1")
        for _ in range(steps):
            trace = executor.run(self.emitters())
        return trace

    def reset(self) -> None:
        """Restore every field."""
        self.memory.reset()

    def rewind(self, executor: Executor, steps: int) -> None:
        """Begin again, and run the first `steps` steps."""
        self.reset()
        if steps:
            self.run(executor, steps)

    def state(self) -> bytes:
        """Return the bytes of every field."""
        return b"".join(field.tobytes() for field in self.memory.on_host().values())

    def close(self) -> None:
        """Do nothing: arrays live as long as the workload."""
