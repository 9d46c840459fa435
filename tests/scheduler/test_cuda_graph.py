"""The driver calls with which graphs are built, against a stand-in for the driver. Tests on GPUs run the graphs."""

from __future__ import annotations

import gc
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from simengine_scheduler.cuda import graph as cuda_graph


class Status(int):
    """What a driver function returns first: 0 for success."""

    name = "CUDA_ERROR_INVALID_VALUE"


class StandIn:
    """Hands out numbers for graphs and nodes, and notes what is alive and what was set."""

    CUDA_KERNEL_NODE_PARAMS = SimpleNamespace
    CUfunction = CUevent = CUgraphExec = int

    def __init__(self, refuse: str = "") -> None:
        self.alive: set[int] = set()
        self.numbers: list[int] = []  # of nodes, in the order in which they were added
        self.nodes: list[tuple[tuple[int, ...], int]] = []  # places of those waited for, and arguments or event
        self.updates: list[tuple[int, int, int]] = []
        self.switched: list[tuple[int, int, int]] = []
        self._refuse = refuse
        self._made = 100

    def _make(self, function: str) -> tuple[Status, int]:
        if function == self._refuse:
            return Status(1), 0
        self._made += 1
        return Status(0), self._made

    def _add(self, number: int, behind: Any, content: int) -> None:
        self.nodes.append((tuple(map(self.numbers.index, behind or ())), content))
        self.numbers.append(number)

    def cuGraphCreate(self, flags: int) -> tuple[Status, int]:
        made = self._make("create")
        self.alive.add(made[1])
        return made

    def cuGraphInstantiate(self, graph: int, flags: int) -> tuple[Status, int]:
        made = self._make("instantiate")
        if not made[0]:
            self.alive.add(made[1])
        return made

    def cuGraphAddKernelNode(self, graph: int, behind: Any, count: int, parameters: Any) -> tuple[Status, int]:
        made = self._make("kernel")
        assert len(behind or ()) == count
        self._add(made[1], behind, parameters.kernelParams)
        return made

    def cuGraphAddEventRecordNode(self, graph: int, behind: Any, count: int, event: int) -> tuple[Status, int]:
        made = self._make("event")
        self._add(made[1], behind, event)
        return made

    def cuGraphExecKernelNodeSetParams(self, graph: int, node: int, parameters: Any) -> tuple[Status]:
        self.updates.append((graph, node, parameters.kernelParams))
        return (Status(0),)

    def cuGraphDestroy(self, graph: int) -> tuple[Status]:
        self.alive.remove(graph)
        return (Status(0),)

    cuGraphExecDestroy = cuGraphDestroy

    def cuGraphNodeSetEnabled(self, graph: int, node: int, enabled: int) -> tuple[Status]:
        self.switched.append((graph, node, enabled))
        return (Status(self._refuse == "enable"),)


class Launch:
    """A launch whose table of arguments is at some address."""

    def __init__(self, table: int) -> None:
        self.table = table

    def node(self) -> tuple[int, tuple[int, int, int], tuple[int, int, int], int, int]:
        return 7, (1, 1, 1), (32, 1, 1), 0, self.table


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    stand_in = StandIn()
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=stand_in))
    return stand_in


def test_a_graph_outlives_its_template(driver: StandIn) -> None:
    graph = cuda_graph.build([Launch(1), Launch(2), Launch(3)], [(), (0,), (0, 1)])
    assert driver.nodes == [((), 1), ((0,), 2), ((0, 1), 3)]
    assert driver.alive == {graph}
    cuda_graph.destroy(graph)
    assert not driver.alive


def test_timed_nodes_stand_between_two_events(driver: StandIn) -> None:
    cuda_graph.build([Launch(1), Launch(2)], [(), (0,)], [(11, 12), (13, 14)])
    assert driver.nodes == [((), 11), ((0,), 1), ((1,), 12), ((2,), 13), ((3,), 2), ((4,), 14)]


def test_arguments_of_a_node_are_put_into_the_executable_graph(driver: StandIn) -> None:
    launches = [Launch(1), Launch(2)]
    graph, template = cuda_graph.build_updatable(launches, [(), (0,)])
    launches[1].table = 5
    cuda_graph.update(graph, template, 1, launches[1])
    assert driver.updates == [(graph, driver.numbers[1], 5)]
    assert driver.alive == {graph, template.graph}
    cuda_graph.destroy(graph, template)
    assert not driver.alive


def test_nodes_are_switched_in_the_executable_graph(monkeypatch: pytest.MonkeyPatch, driver: StandIn) -> None:
    graph, template = cuda_graph.build_updatable([Launch(1), Launch(2), Launch(3)], [(), (0,), (1,)])
    cuda_graph.switch(graph, template, [], [2, 0])
    cuda_graph.switch(graph, template, [0], [])
    assert driver.switched == [(graph, driver.numbers[i], on) for i, on in ((2, 0), (0, 0), (0, 1))]
    monkeypatch.setattr(driver, "_refuse", "enable")
    with pytest.raises(RuntimeError, match="CUDA reports CUDA_ERROR_INVALID_VALUE"):
        cuda_graph.switch(graph, template, [], [1])


@pytest.mark.parametrize("refuse", ["kernel", "instantiate"])
def test_what_the_driver_refuses_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch, refuse: str) -> None:
    stand_in = StandIn(refuse)
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=stand_in))
    with pytest.raises(RuntimeError, match="CUDA reports CUDA_ERROR_INVALID_VALUE while a graph is built"):
        cuda_graph.build([Launch(1)], [()])
    assert not stand_in.alive


class Capturing(StandIn):
    """Captures a stream; a wait for the device meanwhile ends the capture, as it does on a GPU."""

    CUstream_flags = SimpleNamespace(CU_STREAM_NON_BLOCKING=1)
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL=1)
    CUlaunchConfig = CUlaunchAttribute = staticmethod(lambda: SimpleNamespace(value=SimpleNamespace()))
    CUlaunchAttributeID = SimpleNamespace(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION=1)
    capturing = False
    invalid = False

    def cuStreamCreate(self, flags: int) -> tuple[Status, int]:
        return self._make("stream")

    def cuStreamDestroy(self, stream: int) -> tuple[Status]:
        return (Status(0),)

    def cuStreamBeginCapture(self, stream: int, mode: int) -> tuple[Status]:
        self.capturing = True
        return (Status(0),)

    def cuLaunchKernelEx(self, config: Any, function: int, table: int, extra: int) -> tuple[Status]:
        return (Status(self.invalid),)

    def cuStreamEndCapture(self, stream: int) -> tuple[Status, int]:
        self.capturing = False
        return (Status(1), 0) if self.invalid else self.cuGraphCreate(0)

    def wait_for_device(self) -> None:
        self.invalid |= self.capturing


def test_garbage_that_waits_for_the_device_does_not_end_a_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed simulations do: they wait for their work before their memory goes back."""
    driver = Capturing()
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=driver))

    class Waiting:
        def __init__(self) -> None:
            self.itself = self  # only the collector finds it

        def __del__(self) -> None:
            driver.wait_for_device()

    class Littering(Launch):
        def node(self) -> tuple[int, tuple[int, int, int], tuple[int, int, int], int, int]:
            Waiting()
            return super().node()

    thresholds = gc.get_threshold()
    gc.set_threshold(1)
    try:
        graph = cuda_graph.build_overlapping([Littering(table) for table in range(50)], ordered=2)
    finally:
        gc.set_threshold(*thresholds)
    assert driver.alive == {graph}
    assert gc.isenabled()
