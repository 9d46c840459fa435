"""Policies that act while they learn.

    a step of policy p:   observe --> hidden --> act   up to four times
                             |                    ^
                             +--> batch --> ... --+-- weights     in some steps, beside the acts of the other policies

Acting reads the weights that the latest learning has written, so that the next acts of the same policy wait for it.
With form "varying", policies act more or less often in a step, and in each step others learn. With form "fixed" all act
as often, and all learn.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ...core.calls import Emitter, FixedList, KernelCall
from .base import Network, check_form
from .calls import CallMaker
from .kernels import BOUNDED, RECTIFIED
from .targets import Target

_LEARNS = 0.3  # probability that a policy learns in a step


class _Policy:
    """The calls of a policy."""

    def __init__(self, make: CallMaker, size: int, layers: int) -> None:
        drawn = make.rng.uniform(-1, 1, (size, size)).astype(np.float32)
        zero = make.memory.constant(np.zeros(size, np.float32))
        square, segment = (size, size, size), make.segment
        x, weights = make.field("x", drawn), make.field("weights", drawn.T.copy())
        hidden, action, *batches = (
            make.field(name, np.zeros_like(drawn))
            for name in ("hidden", "action", *(f"batch{k}" for k in range(layers)))
        )
        observe = make.observe("x", (x, action), size, size, size, "action")
        look = make.dense("look", x, hidden, square, RECTIFIED, (segment("x"),), (segment("hidden"),))
        reads = segment("hidden"), segment("weights")
        act = make.dense("act", hidden, action, square, BOUNDED, reads, (segment("action"),), layer=(weights, zero))
        self.acts = [observe, look, act]
        self.learns = list[KernelCall]()
        names, arrays = ["x", *(f"batch{k}" for k in range(layers)), "weights"], [x, *batches, weights]
        for k, (source, target) in enumerate(pairwise(arrays)):
            used = (segment(names[k]),), (segment(names[k + 1]),)
            self.learns.append(make.dense(f"learn{k}", source, target, square, BOUNDED, *used))

    def calls(self, acts: int, learns: bool) -> list[KernelCall]:
        """Return the calls of a step. What is learned from are the first observations."""
        return [*self.acts, *(self.learns if learns else ()), *self.acts * (acts - 1)]


class Learning(Network):
    """Policies that act while they learn.

    Args:
        target: where it runs.
        policies: how many there are.
        acts: most acts of a policy in a step.
        layers: of learning, beside the first and the last.
        size: rows, inputs and outputs of every layer.
        form: "varying" or "fixed".
        seed: of weights and forms.
    """

    def __init__(
        self,
        target: Target,
        policies: int = 8,
        acts: int = 4,
        layers: int = 6,
        size: int = 64,
        form: str = "varying",
        seed: int = 0,
    ) -> None:
        super().__init__("learning", target, policies)
        self._fixed = check_form(form) == "fixed"
        rng = np.random.default_rng(seed)
        self._policies = [_Policy(CallMaker(self.memory, n, rng), size, layers) for n in range(policies)]
        self._acts, self._seed = acts, seed
        self._lists = [FixedList(policy.calls(acts, True)) for policy in self._policies]
        self._forms = np.random.default_rng(seed)

    def emitters(self) -> Sequence[Emitter]:
        """Return the list of each policy."""
        if self._fixed:
            return list(self._lists)
        acts = self._forms.integers(1, self._acts, len(self._policies), endpoint=True).tolist()
        learns = (self._forms.random(len(self._policies)) < _LEARNS).tolist()
        return [policy.calls(*form) for policy, *form in zip(self._policies, acts, learns, strict=True)]

    def reset(self) -> None:
        """Restore every field, and draw the same forms again."""
        super().reset()
        self._forms = np.random.default_rng(self._seed)
