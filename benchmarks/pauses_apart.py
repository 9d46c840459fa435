"""Parts of a step in which other groups pause than before: `python -m benchmarks.pauses_apart --json FILE`.

Random robots are stepped with whole steps on a GPU, all of them, and with a random tenth that pauses, in turn. First
the kernels of robots that pause are told to end at once, as `Simulation` does it where groups pause now and then. Then
their lists are left out of the graph, as it does where groups pause for long. Parts are left out: the launch of the
graph, and the switching of its nodes. Last, lists of the graph are switched off and on by themselves, with and without
`cuGraphUpload` before the launch. Times are medians [us].
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import simengine
from benchmarks.models import compiled
from benchmarks.stepping import document, scatter_group
from simengine.cli.results.result_file import write_json

_SWITCHED = (1, 3, 6, 12, 32)  # lists of a graph
_ROUNDS = 4  # of steps of all groups and steps with pauses, in turn
_OFTEN, _FIRST = 50, 10  # timed steps of a round, and those before them


class Parts:
    """A simulation of robots, and the parts of its steps."""

    def __init__(self, robots: int, worlds: int) -> None:
        models = [simengine.load_model(compiled(f"robot:{seed}")) for seed in range(robots)]
        groups = [(model, worlds) for model in models]
        self.sim = simengine.Simulation(groups, backend="cuda", executor="graph-cached", emission="whole")
        for group in self.sim.groups:
            scatter_group(group, 2)
        self._draw = np.random.default_rng(1)
        engine: Any = self.sim._batch.engine
        self._pauses = engine._pauses
        self.driver, self._lists = engine.executor._driver, engine.executor._of_lists
        self._stream = engine.executor._lanes.handles[0]

    def steps(self, part: str) -> dict[str, Any]:
        """Steps of all groups, and steps in which a random tenth pauses."""
        shape = _ROUNDS, _FIRST + _OFTEN, len(self.sim.groups)
        every, some = np.zeros(shape, bool).tolist(), (self._draw.random(shape) < 0.1).tolist()
        seconds: tuple[list[float], list[float]] = [], []
        for rounds in zip(every, some, strict=True):
            for found, rows in zip(seconds, rounds, strict=True):
                found += self._timed(rows)[_FIRST:]
        of_all, with_pauses = (round(1e6 * statistics.median(found), 1) for found in seconds)
        return {"part": part, "all_us": of_all, "tenth_pauses_us": with_pauses}

    def _timed(self, rows: Sequence[list[bool]]) -> list[float]:
        """The durations of steps in which these groups pause [s]."""
        seconds = []
        for row in rows:
            began = perf_counter()
            self.sim.pause(row)
            self.sim.step()
            seconds.append(perf_counter() - began)
        return seconds

    def leave_out(self) -> None:
        """From here on leave the lists of groups that pause out of the graph."""
        self._pauses.wake()
        self._pauses.stay = lambda paused, whole: frozenset()

    def without(self, part: str, *methods: str) -> dict[str, Any]:
        """The same without some methods of the driver."""
        kept = {name: getattr(self.driver, name) for name in methods}
        try:
            for name in methods:
                setattr(self.driver, name, lambda *arguments: None)
            return self.steps(part)
        finally:
            for name, method in kept.items():
                setattr(self.driver, name, method)

    def switching(self, lists: int, upload: bool) -> dict[str, Any]:
        """Switch some lists on, after a launch without them, and launch the graph."""
        from cuda.bindings import driver as cuda

        graph = max(self._lists._graphs, key=lambda graph: graph.size)
        handle, stream = graph.built.handle, self._stream
        nodes = [node for place in list(graph.places.values())[:lists] for node in place.nodes]
        marks: list[list[float]] = []
        for number in range(60):
            times = [perf_counter()]
            self.driver.switch_nodes(handle, nodes if number % 2 else (), () if number % 2 else nodes)
            times.append(perf_counter())
            if upload:
                cuda.cuGraphUpload(cuda.CUgraphExec(handle), cuda.CUstream(stream))
            times.append(perf_counter())
            self.driver.launch_graph(handle, stream)
            times.append(perf_counter())
            self.driver.synchronize(stream)
            times.append(perf_counter())
            marks.append(times)
        names = ("switch_us", "upload_us", "launch_us", "rest_us")
        spans = np.median(np.diff(np.array(marks[1::2]), axis=1), axis=0) * 1e6
        return {"part": "switching", "lists": lists, **dict(zip(names, spans.round(1).tolist(), strict=True))}


def main() -> int:
    """Measure the parts, and print and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", type=int, default=64)
    parser.add_argument("--worlds", type=int, default=16, help="worlds of each robot")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    parts = Parts(args.robots, args.worlds)
    rows = [
        parts.steps("everything"),
        parts.without("no launch", "launch_graph"),
    ]
    parts.leave_out()
    rows += [
        parts.steps("left out"),
        parts.without("left out, no launch", "launch_graph"),
        parts.without("left out, no launch, no switching", "launch_graph", "switch_nodes"),
        parts.without("left out, no switching", "switch_nodes"),
    ]
    parts.sim.step()
    rows += [parts.switching(lists, upload) for lists in _SWITCHED for upload in (False, True)]
    for row in rows:
        print(row, flush=True)
    write_json(document("benchmarks.pauses_apart", rows), args.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
