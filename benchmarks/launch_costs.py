"""What launching costs on this GPU, by empty kernels: `python -m benchmarks.launch_costs`. Seconds, medians.

On the host: a launch, the record of an event, a wait and a query, the building of a graph a node and its launch. On the
device: from one kernel to the next of a stream, of a graph's chain and of a graph eight wide, from a kernel to one of
another stream that waits for its event, and from the launch of a kernel or graph to the host's seeing its end.
Device figures are taken behind a kernel that lasts until the host has issued everything, so that they are not its.
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
    """An empty kernel, and one that lasts so many seconds."""
    import cupy
    import numpy as np

    empty, waiting = (cupy.RawKernel(_SOURCE, name) for name in ("nothing", "pause"))
    return (
        CudaLaunch.from_kernel(empty, (1,), (32,)),
        CudaLaunch.from_kernel(waiting, (1,), (1,), (np.int64(1e9 * pause),)),
    )


class Costs:
    """The measurements; each returns seconds."""

    def __init__(self) -> None:
        self.driver = CudaDriver()
        self.streams = [self.driver.create_stream() for _ in range(2)]
        self.marks = [self.driver.create_event(timing=True) for _ in range(2)]
        self.events = [self.driver.create_event(timing=False) for _ in range(COUNT)]
        self.empty, self.pause = launches(4e-3)

    def host(self, action: Callable[[int], Any]) -> float:
        """Host seconds of an action."""
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
        """Device seconds a kernel of what `issue` puts on the first stream, behind a pause."""
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
        """Host seconds from before a launch on an idle device to after the query that sees its end."""
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
        """Empty kernels on one stream."""
        for _ in range(COUNT):
            self.empty.issue(self.streams[0])

    def marked(self) -> None:
        """Empty kernels between events, as a recorder of times puts them."""
        for _ in range(COUNT // 2):
            self.driver.record(self.events[0], self.streams[0])
            self.empty.issue(self.streams[0])
            self.driver.record(self.events[1], self.streams[0])

    def crossing(self) -> None:
        """Empty kernels on two streams in turn, each behind the one before."""
        for i in range(COUNT):
            here, there = self.streams[i % 2], self.streams[(i + 1) % 2]
            self.empty.issue(here)
            self.driver.record(self.events[i], here)
            self.driver.wait(there, self.events[i])

    def graph(self, width: int) -> tuple[float, float, float]:
        """Seconds of building, of launching on the host, and on the device a node, of chains side by side."""
        waits = [[i - width] if i >= width else [] for i in range(COUNT)]
        self.driver.destroy_graph(self.driver.build_graph([self.empty], [[]], None))  # the first one loads the bindings
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
        """The turnaround of a graph of one node."""
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
    except RuntimeError as error:  # no cuda-bindings
        print(error, file=sys.stderr)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the costs in microseconds as JSON."""
    print(json.dumps({name: round(1e6 * seconds, 3) for name, seconds in measured().items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
