"""Records kernel lists and their times under each executor: `python -m benchmarks.record_lists --json lists.json.gz`.

For each workload the program records the counted list and, if there is one, the list ahead of counts, with the duration
of each kernel while it is alone on the device (`ListRecorder`). It also measures a step under
each executor, from the same states and in the same process. Executors are written as for `simengine bench scheduler`:
a name, then options. `benchmarks.gpu_model` fits and checks the GPU model on the result. On a CPU the program records
durations of the CPU.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

import simengine
from benchmarks.mixed import SIX
from benchmarks.models import compiled, short
from benchmarks.piles import settled
from benchmarks.stepping import document, group_controls, scatter_group
from simengine.cli.results.result_file import write_json
from simengine.plan.issue import Issue
from simengine_scheduler import KernelCall, make_executor
from simengine_scheduler.gpu_model import ListRecorder
from simengine_scheduler.registry import EXECUTORS

GRASP = str(Path(simengine.__file__).parent / "zoo" / "grasp.xml")
WORKLOADS = (
    "ant@64",
    "ant@2048",
    "humanoid@64",
    "half_cheetah@64",
    "walker2d_v5@64",
    f"{GRASP}@64",
    "+".join(SIX) + "@64",
    "pile:mixed:30@64",
)
CUDA = (
    *("serial", "streams", "streams:completion=polling", "streams:stream_policy=kesco", "streams:stream_policy=opara"),
    *("graph", "graph-cached", "pipeline"),
)
HOST = ("serial", "threads")
_SETTLING_STEPS = 300
_HOST_SECONDS_A_CALL = 30e-6
"""An upper bound on the time the host takes to issue a call between two events [s]."""


def options_of(text: str) -> tuple[str, dict[str, Any]]:
    """An executor's name and options from `name:option=value,option=value`."""
    name, _, rest = text.partition(":")
    pairs = (part.split("=", 1) for part in rest.split(",") if part)
    return name, {key: int(value) if value.isdigit() else value for key, value in pairs}


def _settled(name: str) -> dict[str, np.ndarray]:
    """The state of a pile at rest, by field."""
    _, kind, bodies = name.split(":")
    return settled(int(bodies), kind, _SETTLING_STEPS).state


class Workload:
    """A simulation whose executor and way of emission change between measurements.

    Args:
        text: names of models joined by "+", then "@" and the number of worlds of each.
        backend: backend of the simulation.
    """

    def __init__(self, text: str, backend: str) -> None:
        names, _, worlds = text.rpartition("@")
        self.models = [short(name) for name in names.split("+")]
        self._piles = [_settled(name) if name.startswith("pile:") else None for name in names.split("+")]
        self.worlds = int(worlds)
        pairs = [(simengine.load_model(compiled(name)), self.worlds) for name in names.split("+")]
        self.sim = simengine.Simulation(pairs, backend=backend, executor="serial", emission="ahead")
        self.engine = cast(Any, self.sim._engine)
        self.start()
        self.home = self.engine.executor
        self.emissions = ["counted", "ahead"] if self._goes_ahead() else ["counted"]

    def start(self) -> None:
        """Set scattered states and random controls. Piles start at rest."""
        for number, (group, pile) in enumerate(zip(self.sim.groups, self._piles, strict=True)):
            group.reset()
            if pile is None:
                scatter_group(group, number)
            else:
                group.set_state(**{name: np.tile(value, (group.num_worlds, 1)) for name, value in pile.items()})
            group.set_state(ctrl=group_controls(self.sim, group, number)[0])

    def _goes_ahead(self) -> bool:
        return all(emitter.can_go_ahead for shards in self.engine.emitters.values() for emitter in shards)

    def executor(self, text: str, **more: Any) -> Any:
        """Make an executor for the simulation's segments and device."""
        name, options = options_of(text)
        usual = self.engine.backend.executor_options(name, len(self.sim.groups))
        return make_executor(name, **{**usual, "segments": self.engine.segments, **options, **more})

    def issue_by(self, emission: str) -> None:
        """Choose the emission of the following steps, "counted" or "ahead"."""
        self.engine.issuing = self.engine.issuing._replace(emission=emission, issue=Issue(emission))

    def seconds(self, text: str, emission: str, steps: int, rounds: int) -> float:
        """Duration of a step under an executor [s], the median over rounds that start from the same states."""
        self.start()
        self.issue_by(emission)
        self.engine.executor = self.executor(text)
        try:
            self.sim.step(steps)
            found = []
            for _ in range(rounds):
                self.sim.synchronize()
                begin = time.perf_counter()
                self.sim.step(steps)
                self.sim.synchronize()
                found.append((time.perf_counter() - begin) / steps)
        finally:
            self.sim.synchronize()
            self.engine.executor.close()
            self.engine.executor = self.home
        return float(np.median(found))

    def recorded(self, emission: str, steps: int, repeats: int) -> dict[str, Any]:
        """Record the list of a step after `steps` steps, with durations over `repeats` repeats."""
        self.start()
        self.issue_by(emission)
        self.sim.step(steps)
        inner = self.executor("serial", record="times")
        calls = len(self.sim.schedule.kernel_list)
        pause, overhead = self._pause(calls) if self.sim.backend == "cuda" else (None, 0.0)
        recorder = ListRecorder(inner, self.engine.segments, pause, overhead)
        for _ in range(repeats):
            active = self.engine._active()
            self.engine._advance(active, recorder, 1, frozenset(), (), Issue(emission), True, len(active))
            self.sim.synchronize()
        result = recorder.result(models=self.models, worlds=self.worlds, emission=emission, overhead=overhead)
        recorder.close()
        return result.to_data()

    def _pause(self, calls: int) -> tuple[KernelCall, float]:
        """A kernel that lasts while a list is issued, and the time that the recorder shows for an empty kernel [s]."""
        from benchmarks.launch_costs import launches

        empty, waiting = launches(min(5e-3, calls * _HOST_SECONDS_A_CALL))
        pause = KernelCall("pause", waiting, (), ())
        recorder = ListRecorder(self.executor("serial", record="times"), self.engine.segments, pause)
        for _ in range(10):
            recorder.run([[KernelCall("empty", empty, (), ())] * 50])
        overhead = float(np.mean(recorder.durations()))
        recorder.close()
        return pause, overhead


def record(text: str, args: argparse.Namespace, note: Callable[[dict[str, Any]], None]) -> None:
    """Record the lists of a workload, and its times under each executor. A failure is recorded in place of a time.

    `note` gets the result so far after each executor, so that an executor that never returns loses no other results.
    """
    workload = Workload(text, args.backend)
    middle = args.steps + max(0, args.steps * args.rounds - args.repeats) // 2  # the middle of the timed steps
    lists = {emission: workload.recorded(emission, middle, args.repeats) for emission in workload.emissions}
    measured: list[dict[str, Any]] = []
    row = {"models": workload.models, "worlds": workload.worlds, "lists": lists, "measured": measured}
    for executor in args.executors or (CUDA if workload.sim.backend == "cuda" else HOST):
        if options_of(executor)[0] not in EXECUTORS:
            continue
        for emission in workload.emissions:
            found: dict[str, Any] = {"executor": executor, "emission": emission}
            try:
                seconds = workload.seconds(executor, emission, args.steps, args.rounds)
                found["us_per_step"] = round(1e6 * seconds, 2)
            except Exception as error:
                found["error"] = f"{type(error).__name__}: {error}"
            measured.append(found)
            print(" ", found, flush=True)
        note(row)
    workload.sim.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Record the workloads, and write the results so far after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", nargs="+", default=list(WORKLOADS), metavar="MODEL+MODEL@WORLDS")
    parser.add_argument("--executors", nargs="+", metavar="NAME:OPTION=VALUE", help="default: all but device")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--steps", type=int, default=25, help="steps of a round, and before the first")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=16, help="steps recorded, in the middle of those timed")
    parser.add_argument("--json", type=Path, required=True, help="result; compressed if it ends in .gz")
    args = parser.parse_args(arguments)
    costs: dict[str, float] = {}
    if args.backend in ("auto", "cuda") and not simengine.available_backends()["cuda"]:
        from benchmarks.launch_costs import measured

        costs = measured()
    rows: list[dict[str, Any]] = []

    def note(row: dict[str, Any]) -> None:
        if not rows or rows[-1] is not row:
            rows.append(row)
        write_json({**document("benchmarks.record_lists", rows), "costs": costs}, args.json)

    for text in args.workloads:
        begin = time.perf_counter()
        record(text, args, note)
        print(f"{text}: {time.perf_counter() - begin:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
