"""Several clients of one processor, each with a small network of its own that it runs on a batch.

    client c:  observe -- dense -- dense -- ... -- dense       sizes and depth are random

With form "varying" a random half of the clients sends a request in each step, and at least one. With form "fixed" all
do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.calls import Emitter, FixedList
from .base import Network, check_form
from .calls import CallMaker
from .kernels import BOUNDED, RECTIFIED
from .targets import Target

_SENDS = 0.5  # probability that a client sends a request in a step


def _request(make: CallMaker, rows: int, depth: int, most: int) -> FixedList:
    """Return the list of a client's request."""
    widths = [max(4, most >> shift) for shift in range(3)]
    sizes = [int(width) for width in make.rng.choice(widths, depth + 1)]
    fields = ["x", *(f"hidden{layer}" for layer in range(1, depth)), "action"]
    arrays = [make.field("x", make.rng.uniform(-1, 1, (rows, sizes[0])).astype(np.float32))]
    arrays += [
        make.field(name, np.zeros((rows, size), np.float32)) for name, size in zip(fields[1:], sizes[1:], strict=True)
    ]
    calls = [make.observe("x", (arrays[0], arrays[-1]), rows, sizes[0], sizes[-1], "action")]
    for layer in range(depth):
        kind = RECTIFIED if layer < depth - 1 else BOUNDED
        reads, writes = ((make.segment(name),) for name in fields[layer : layer + 2])
        shape = rows, sizes[layer], sizes[layer + 1]
        calls.append(make.dense(f"layer{layer}", arrays[layer], arrays[layer + 1], shape, kind, reads, writes))
    return FixedList(calls)


class Clients(Network):
    """Clients with networks of their own.

    Args:
        target: where it runs.
        clients: how many there are.
        rows: inputs of a request.
        most: largest width of a layer.
        form: "varying" or "fixed".
        seed: of networks, inputs and requests.
    """

    def __init__(
        self, target: Target, clients: int = 16, rows: int = 64, most: int = 256, form: str = "varying", seed: int = 0
    ) -> None:
        super().__init__("clients", target, clients)
        self._fixed, self._seed = check_form(form) == "fixed", seed
        rng = np.random.default_rng(seed)
        self._lists = [
            _request(CallMaker(self.memory, n, np.random.default_rng((seed, n))), rows, int(rng.integers(2, 9)), most)
            for n in range(clients)
        ]
        self._sent = np.random.default_rng(seed)

    def emitters(self) -> Sequence[Emitter]:
        """Return the lists of the clients that send a request."""
        if self._fixed:
            return list(self._lists)
        drawn = self._sent.random(len(self._lists))
        sends = drawn <= max(_SENDS, drawn.min())  # one at least
        return [own for own, sent in zip(self._lists, sends.tolist(), strict=True) if sent]

    def reset(self) -> None:
        """Restore every field, and draw the same requests again."""
        super().reset()
        self._sent = np.random.default_rng(self._seed)
