"""Reads workloads that `benchmarks.record_lists` measured, and predicts each measurement with the GPU model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.record_lists import options_of
from simengine_scheduler import FixedList, Segments, make_executor
from simengine_scheduler.gpu_model import GpuSpec, RecordedList
from simengine_scheduler.gpu_model.recording import RecordedCall, read_json
from simengine_scheduler.gpu_model.simulated import MODELS

REPEATS = 25
"""Number of steps in a prediction, which ends with one wait for the device. A measurement does the same."""


KEPT = ("graph-cached", "pipeline", "device")
"""Executors whose time for a counted list depends on earlier lists, so that one recorded step cannot predict it."""


class Measurement(NamedTuple):
    """The time of a step under an executor: name of the list, executor as text, and duration of a step [us]."""

    emission: str
    executor: str
    us: float


@dataclass(frozen=True)
class Workload:
    """The kernel lists of one simulation by emission, and the measurements of them."""

    name: str
    lists: dict[str, RecordedList]
    measured: tuple[Measurement, ...]


def short_name(models: Sequence[str], worlds: int) -> str:
    """A name for tables: the model, or the number of models, and the worlds of each."""
    return f"{models[0].replace('/', ' ') if len(models) == 1 else f'{len(models)} models'} x {worlds}"


def load(path: Path) -> tuple[list[Workload], dict[str, float], dict[str, Any]]:
    """Read a file: its workloads, the costs of launches measured with them [s], and the hardware."""
    data = read_json(path)
    workloads = []
    for row in data["rows"]:
        lists = {emission: RecordedList.from_data(found) for emission, found in row["lists"].items()}
        measured = tuple(
            Measurement(m["emission"], m["executor"], m["us_per_step"])
            for m in row["measured"]
            if "us_per_step" in m and _can_be_predicted(m["emission"], options_of(m["executor"])[0])
        )
        workloads.append(Workload(short_name(row["models"], row["worlds"]), lists, measured))
    about = {key: data[key] for key in ("hardware", "versions", "date", "command")}
    return workloads, data["costs"], about


def together(workloads: Sequence[Workload]) -> Workload:
    """A batch that joins several simulations, made from their lists ahead of counts. It has no measurements."""
    pieces: list[dict[str, Any]] = []
    calls: list[RecordedCall] = []
    items: list[tuple[int, ...]] = []
    fixed: list[bool] = []
    for number, recorded in enumerate(workload.lists["ahead"] for workload in workloads):
        places, first = range(len(recorded.segments)), len(pieces)
        pieces += [piece | {"buffer": f"{number} {piece['buffer']}"} for piece in recorded.segments.to_data(places)]
        items += [tuple(len(calls) + n for n in own) for own in recorded.items]
        fixed += recorded.fixed
        for call in recorded.calls:
            reads, writes, updates = (
                tuple(first + s for s in part) for part in (call.reads, call.writes, call.updates)
            )
            calls.append(call._replace(reads=reads, writes=writes, updates=updates))
    segments = Segments.from_data(pieces)
    return Workload(
        f"{len(workloads)} models side by side",
        {"ahead": RecordedList(tuple(calls), tuple(items), tuple(fixed), segments)},
        (),
    )


def _can_be_predicted(emission: str, executor: str) -> bool:
    return executor in MODELS and not (emission == "counted" and executor in KEPT)


def predicted(recorded: RecordedList, executor: str, gpu: GpuSpec, repeats: int = REPEATS) -> float:
    """Predict the duration of a step of a list under an executor [us], after a first step that is not included."""
    name, options = options_of(executor)
    simulated: Any = make_executor("simulated", segments=recorded.segments, model=name, gpu=gpu, **options)
    lists: Any = recorded.emitters()
    at_once = simulated.rounds if all(recorded.fixed) else 1  # steps issued as one list, like in the engine
    if at_once > 1:
        lists = [FixedList(at_once * tuple(fixed)) for fixed in lists]
    simulated.run(lists)
    simulated.synchronize()
    begin = simulated.now
    if all(recorded.fixed):
        runs = -(-repeats // at_once)
        simulated.repeat(lists, runs)
        steps = runs * at_once
    else:
        steps = repeats
        simulated.run(recorded.emitters(steps))
    simulated.synchronize()
    simulated.close()
    return float(1e6 * (simulated.now - begin) / steps)


def with_host(gpu: GpuSpec, **costs: Any) -> GpuSpec:
    """The same GPU with other costs of the host."""
    return replace(gpu, host=replace(gpu.host, **costs))
