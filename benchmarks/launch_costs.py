"""Measures the costs of launches on this GPU with empty kernels: `python -m benchmarks.launch_costs`. Medians.

Times of the host are those of a launch, of recording an event, of a wait, of a query, and of building a graph (for each
node) and launching it. Times of the device are those from one kernel to the next in a stream, in a chain of a graph and
in eight chains of a graph; from a kernel to one of another stream that waits for its event; and from the launch of a
kernel or a graph until the host sees its end. For times of the device, a first kernel lasts until the host has issued
all others, so that the time of the host is not part of them.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from simengine_scheduler import CudaLaunch
from simengine_scheduler.cuda.driver import CudaDriver

COUNT = 200
REPEATS = 9
WIDTH = 8
_SOURCE = r"""
extern "C" __global__ void nothing() {}
extern "C" __global__ void pause(long long nanoseconds) {
    long long now, begin;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do { asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); } while (now - begin < nanoseconds);
}
"""


def launches(pause: float) -> tuple[CudaLaunch, CudaLaunch]:
    """An empty kernel, and a kernel that lasts `pause` seconds."""
    import cupy
    import numpy as np

    empty, waiting = (cupy.RawKernel(_SOURCE, name) for name in ("nothing", "pause"))
    return (
        CudaLaunch.from_kernel(empty, (1,), (32,)),
        CudaLaunch.from_kernel(waiting, (1,), (1,), (np.int64(1e9 * pause),)),
    )


class Costs:
    """The measurements. Each returns seconds."""

    def __init__(self) -> None:
        self.driver = CudaDriver()
        self.streams = [self.driver.create_stream() for _ in range(2)]
        self.marks = [self.driver.create_event(timing=True) for _ in range(2)]
        self.events = [self.driver.create_event(timing=False) for _ in range(COUNT)]
        self.empty, self.pause = launches(4e-3)

    def host(self, action: Callable[[int], Any]) -> float:
        """Median time that an action takes the host [s]."""
        found = []
        for _ in range(REPEATS):
            begin = time.perf_counter()
            for i in range(COUNT):
                action(i)
            found.append((time.perf_counter() - begin) / COUNT)
            for stream in self.streams:
                self.driver.synchronize(stream)
        return statistics.median(found)

    def device(self, issue: Callable[[], None], kernels: int) -> float:
        """Median time of the device for one of the `kernels` that `issue` puts on the first stream [s]."""
        found = []
        for _ in range(REPEATS):
            self.pause.issue(self.streams[0])
            self.driver.record(self.marks[0], self.streams[0])
            issue()
            self.driver.record(self.marks[1], self.streams[0])
            self.driver.synchronize(self.streams[0])
            found.append(self.driver.elapsed(*self.marks) / kernels)
        return statistics.median(found)

    def turnaround(self, issue: Callable[[], None]) -> float:
        """Median time from a launch on an idle device until a query of the host sees its end [s]."""
        found = []
        for _ in range(COUNT):
            begin = time.perf_counter()
            issue()
            self.driver.record(self.events[0], self.streams[0])
            while not self.driver.query(self.events[0]):
                pass
            found.append(time.perf_counter() - begin)
        return statistics.median(found)

    def chain(self) -> None:
        """Issue empty kernels on one stream."""
        for _ in range(COUNT):
            self.empty.issue(self.streams[0])

    def marked(self) -> None:
        """Issue empty kernels between events, like a recorder of times."""
        for _ in range(COUNT // 2):
            self.driver.record(self.events[0], self.streams[0])
            self.empty.issue(self.streams[0])
            self.driver.record(self.events[1], self.streams[0])

    def crossing(self) -> None:
        """Issue empty kernels on two streams in turn, each of which waits for the one before it."""
        for i in range(COUNT):
            here, there = self.streams[i % 2], self.streams[(i + 1) % 2]
            self.empty.issue(here)
            self.driver.record(self.events[i], here)
            self.driver.wait(there, self.events[i])

    def graph(self, width: int) -> tuple[float, float, float]:
        """Building and launching a graph of `width` chains on the host, and a node on the device [s]."""
        waits = [[i - width] if i >= width else [] for i in range(COUNT)]
        self.driver.destroy_graph(self.driver.build_graph([self.empty], [[]], None))  # the first graph loads bindings
        begin = time.perf_counter()
        graph = self.driver.build_graph([self.empty] * COUNT, waits, None)
        built = (time.perf_counter() - begin) / COUNT
        self.driver.launch_graph(graph, self.streams[0])
        self.driver.synchronize(self.streams[0])
        found = []
        for _ in range(REPEATS):
            begin = time.perf_counter()
            self.driver.launch_graph(graph, self.streams[0])
            found.append(time.perf_counter() - begin)
            self.driver.synchronize(self.streams[0])
        running = self.device(lambda: self.driver.launch_graph(graph, self.streams[0]), COUNT)
        self.driver.destroy_graph(graph)
        return built, statistics.median(found), running

    def single_node(self) -> float:
        """Turnaround of a graph with one node [s]."""
        graph = self.driver.build_graph([self.empty], [[]], None)
        seconds = self.turnaround(lambda: self.driver.launch_graph(graph, self.streams[0]))
        self.driver.destroy_graph(graph)
        return seconds


def measured() -> dict[str, float]:
    """All costs [s]."""
    costs = Costs()
    driver, (stream, other), events = costs.driver, costs.streams, costs.events
    costs.chain()
    found = {
        "launch": costs.host(lambda i: costs.empty.issue(stream)),
        "record": costs.host(lambda i: driver.record(events[i], stream)),
        "wait": costs.host(lambda i: driver.wait(other, events[i])),
        "query": costs.host(lambda i: driver.query(events[i])),
        "chain": costs.device(costs.chain, COUNT),
        "marked_chain": costs.device(costs.marked, COUNT // 2),
        "crossing": costs.device(costs.crossing, COUNT),
        "turnaround": costs.turnaround(lambda: costs.empty.issue(stream)),
    }
    try:
        build, launch, chain = costs.graph(1)
        _, _, wide = costs.graph(WIDTH)
        found |= {"graph_build": build, "graph_launch": launch, "graph_chain": chain, "graph_wide": wide}
        found["graph_turnaround"] = costs.single_node()
    except RuntimeError as error:  # cuda-bindings is not installed
        print(error, file=sys.stderr)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the costs, and print them in microseconds as JSON."""
    print(json.dumps({name: round(1e6 * seconds, 3) for name, seconds in measured().items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
