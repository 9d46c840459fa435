"""A fake device that compiled code can call: its functions have the signatures of CUDA's."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from ..launch.arguments import BufferSet
from ..native.issuer import Functions
from .fake_device import FakeDevice, FakeLaunch

_STATUS, _NOT_READY = 999, 600
_INT, _UNSIGNED, _LONG = ctypes.c_int, ctypes.c_uint, ctypes.c_int64


class _NodeParameters(ctypes.Structure):
    """The parameters of a kernel node, as CUDA has them."""

    _fields_ = [("function", _LONG), ("size", _UNSIGNED * 7), ("arguments", _LONG), ("others", _LONG * 3)]


_SIGNATURES = {
    "launch": ctypes.CFUNCTYPE(_INT, _LONG, *[_UNSIGNED] * 7, _LONG, _LONG, _LONG),
    "record": ctypes.CFUNCTYPE(_INT, _LONG, _LONG),
    "wait": ctypes.CFUNCTYPE(_INT, _LONG, _LONG, _UNSIGNED),
    "query": ctypes.CFUNCTYPE(_INT, _LONG),
    "launch_graph": ctypes.CFUNCTYPE(_INT, _LONG, _LONG),
    "enable": ctypes.CFUNCTYPE(_INT, _LONG, _LONG, _UNSIGNED),
    "create_graph": ctypes.CFUNCTYPE(_INT, ctypes.POINTER(_LONG), _UNSIGNED),
    "add_node": ctypes.CFUNCTYPE(
        _INT, ctypes.POINTER(_LONG), _LONG, ctypes.POINTER(_LONG), ctypes.c_size_t, ctypes.POINTER(_NodeParameters)
    ),
    "instantiate": ctypes.CFUNCTYPE(_INT, ctypes.POINTER(_LONG), _LONG, ctypes.c_ulonglong),
    "destroy_graph": ctypes.CFUNCTYPE(_INT, _LONG),
}


class CalledDevice(FakeDevice):
    """A fake device whose launches compiled code can issue. `called` counts the calls of its functions."""

    def __init__(self, seed: int = 0, eagerness: float = 0.5) -> None:
        super().__init__(seed, eagerness)
        self.called = 0
        self._bodies: dict[int, Callable[[], None]] = {}
        self._templates: dict[int, tuple[list[Any], list[tuple[int, ...]]]] = {}  # of graphs that are being built
        self._raised: Exception | None = None
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
        self._functions = {name: _SIGNATURES[name](self._caught(do)) for name, do in doing.items()}

    def launch(
        self, body: Callable[..., None], arguments: Sequence[Any] = (), buffers: BufferSet | None = None
    ) -> FakeLaunch:
        """Return a launch that compiled code can issue."""
        return _CalledLaunch(self, body, arguments, buffers)

    def foreign_launch(self, body: Callable[..., None]) -> FakeLaunch:
        """Return a launch that only Python can issue."""
        return FakeLaunch(self, body)

    def bind(self, body: Callable[[], None]) -> int:
        """Return a number by which compiled code launches a body."""
        self._bodies[len(self._bodies) + 1] = body
        return len(self._bodies)

    def functions(self) -> Functions:
        """Return the addresses of the functions."""
        return Functions(*(ctypes.cast(each, ctypes.c_void_p).value or 0 for each in self._functions.values()))

    def error(self, status: int) -> Exception:
        """Return what a function raised."""
        raised, self._raised = self._raised, None
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

    def _caught(self, do: Callable[..., Any]) -> Callable[..., int]:
        def called(*arguments: int) -> int:
            self.called += 1
            try:
                return do(*arguments) or 0
            except Exception as error:  # which cannot pass through compiled code
                self._raised = error
                return _STATUS

        return called


class _CalledLaunch(FakeLaunch):
    """A body that compiled code launches by number."""

    __slots__ = ()

    def node(self) -> tuple[int, tuple[int, int, int], tuple[int, int, int], int, int]:
        """Return what compiled code needs; the place of the arguments holds the number of the bound body."""
        device = self._device
        assert isinstance(device, CalledDevice)
        return 1, (1, 1, 1), (1, 1, 1), 0, device.bind(self.bound())
