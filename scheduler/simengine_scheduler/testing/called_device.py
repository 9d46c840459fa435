"""A fake device that compiled code can call: its functions have the signatures of CUDA's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..launch.arguments import BufferSet
from ..native.issuer import Functions
from ..native.written import WrittenFunctions
from .fake_device import FakeDevice, FakeLaunch

_NOT_READY = 600


class CalledDevice(FakeDevice):
    """A fake device whose launches compiled code can issue."""

    def __init__(self, seed: int = 0, eagerness: float = 0.5) -> None:
        super().__init__(seed, eagerness)
        self._bodies: dict[int, Callable[[], None]] = {}
        self._templates: dict[int, tuple[list[Any], list[tuple[int, ...]]]] = {}  # of graphs that are being built
        doing: dict[str, Callable[..., Any]] = {
            "launch": self._launch,
            "record": self.record,
            "wait": lambda stream, event, flags: self.wait(stream, event),
            "query": lambda event: 0 if self.query(event) else _NOT_READY,
            "launch_graph": self._launch_graph,
            "enable": self._enable,
            "create_graph": self._create_graph,
            "add_node": self._add_node,
            "instantiate": self._instantiate,
            "destroy_graph": lambda graph: self._templates.pop(graph) and None,
        }
        self._functions = WrittenFunctions(doing)

    @property
    def called(self) -> int:
        """How many calls of its functions were made."""
        return self._functions.called

    def launch(
        self, body: Callable[..., None], arguments: Sequence[Any] = (), buffers: BufferSet | None = None
    ) -> CalledLaunch:
        """Return a launch that compiled code can issue."""
        return CalledLaunch(self, body, arguments, buffers)

    def foreign_launch(self, body: Callable[..., None]) -> FakeLaunch:
        """Return a launch that only Python can issue."""
        return FakeLaunch(self, body)

    def bind(self, body: Callable[[], None]) -> int:
        """Return a number by which compiled code launches a body."""
        self._bodies[len(self._bodies) + 1] = body
        return len(self._bodies)

    def unbind(self, numbers: list[int]) -> None:
        """Let launches of these numbers raise from now on, and empty the list."""
        for number in numbers:
            self._bodies[number] = _gone
        numbers.clear()

    def functions(self) -> Functions:
        """Return the addresses of the functions."""
        return self._functions.addresses()

    def error(self, status: int) -> Exception:
        """Return what a function raised."""
        raised = self._functions.take_error()
        return raised if raised is not None else super().error(status)

    def _launch(self, function: int, *others: int) -> None:
        *_, stream, arguments, _ = others
        self.enqueue(stream, self._bodies[arguments])

    def _launch_graph(self, graph: int, stream: int) -> None:
        self.launch_graph(graph, stream)

    def _enable(self, graph: int, node: int, on: int) -> None:
        raise NotImplementedError("nodes of a fake graph are switched by `switch_nodes`")

    def _create_graph(self, graph: Any, flags: int) -> None:
        self._handles += 1
        graph[0] = self._handles
        self._templates[self._handles] = [], []

    def _add_node(self, node: Any, graph: int, before: Any, count: int, parameters: Any) -> None:
        bodies, waits = self._templates[graph]
        waits.append(tuple(before[i] - 1 for i in range(count)))
        bodies.append(self._bodies[parameters[0].arguments])
        node[0] = len(bodies)

    def _instantiate(self, executable: Any, graph: int, flags: int) -> None:
        self._handles += 1
        executable[0] = self._handles
        bodies, waits = self._templates[graph]
        self.graphs[self._handles] = bodies, tuple(waits), None


def _gone() -> None:
    raise AssertionError("the arguments of this launch were packed again, and those of before are gone")


class CalledLaunch(FakeLaunch):
    """A body that compiled code launches by number.

    As with a `CudaLaunch`, arguments are packed again once a buffer has moved. Then those packed before are gone, for
    copies of the launch too.
    """

    __slots__ = ("_packed",)

    def __init__(
        self,
        device: FakeDevice,
        body: Callable[..., None],
        arguments: Sequence[Any] = (),
        buffers: BufferSet | None = None,
        shares: _Packed | None = None,
    ) -> None:
        super().__init__(device, body, arguments, buffers)
        self._packed = _Packed() if shares is None else shares

    def with_body(self, body: Callable[..., None]) -> CalledLaunch:
        """Return a launch of another body that shares the packed arguments."""
        return CalledLaunch(self._device, body, self.arguments, self.buffers, self._packed)

    def node(self) -> tuple[int, tuple[int, int, int], tuple[int, int, int], int, int]:
        """Return what compiled code needs; the place of the arguments holds the number of the bound body."""
        device, packed, buffers = self._device, self._packed, self.buffers
        assert isinstance(device, CalledDevice)
        if buffers is not None and packed.moves != buffers.moves:
            device.unbind(packed.numbers)
            packed.moves = buffers.moves
        number = device.bind(self.bound())
        packed.numbers.append(number)
        return 1, (1, 1, 1), (1, 1, 1), 0, number


class _Packed:
    """Packed arguments: how often their buffers had moved, and the numbers of bodies that are bound to them."""

    def __init__(self) -> None:
        self.moves = -1
        self.numbers: list[int] = []
