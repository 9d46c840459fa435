"""Why lists that vary take as long as they do: the model without some of its costs.

A step takes at least what the host takes if the device takes nothing, and what the device takes if the host takes
nothing. What a step takes beyond the longer of the two is waiting: the device has nothing to do while the host issues,
or the host waits for counts. No order of calls can save more than that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from benchmarks.gpu_model.varying import GpuOfList, gpu_of_list, modelled, with_host
from simengine.cli.simulations.workloads import make_workload
from simengine_scheduler.gpu_model import gpu_named
from simengine_scheduler.study.specs import Spec

_DEVICE = ("dispatch", "chain", "mark", "crossing", "spacing", "node", "join", "visible")
TWO_THREADS = 0.70
"""What a launch takes each of two threads, over what it takes one, in benchmarks/results/driver_costs_h100.json."""


def changed(gpu: GpuOfList, **factors: float) -> GpuOfList:
    """The GPU whose host takes so many times as long for some actions."""
    times: dict[str, Any] = {name: by * getattr(gpu.host, name) for name, by in factors.items()}
    return replace(gpu, host=replace(gpu.host, **times))


def machines(gpu: GpuOfList) -> dict[str, GpuOfList]:
    """The machine of a list, and what it would be without some of its costs."""
    launching = dict.fromkeys(("launch", "hop"), TWO_THREADS)
    idle: dict[str, Any] = {"each": 0.0, "of_byte": 0.0, **dict.fromkeys(_DEVICE, 0.0)}
    query = gpu.host.query  # without which a host that waits would not let time pass
    free: dict[str, Any] = {f.name: 0.0 for f in fields(gpu.host) if f.name not in ("listed", "compiled", "query")}
    return {
        "as it is": gpu,
        "device alone": replace(gpu, host=replace(gpu.host, **free, query=query)),
        "host alone": replace(gpu, **idle),
        "runs and waits without Python": changed(gpu, run=0.0, resume=0.0, emit=0.0),
        "no events and waits": changed(gpu, record=0.0, wait=0.0),
        "two threads launch kernels": changed(gpu, **launching),
        "launches on any stream cost the same": changed(gpu, hop=0.0),
        "graphs without branches": changed(gpu, launch_branches=0.0),
    }


OPTIONS: dict[str, dict[str, Any]] = {
    "call by call": {"pieces": False},
    "32 streams, window 128": {"streams": 32, "window": 128},
    "32 streams, window 128, call by call": {"streams": 32, "window": 128, "pieces": False},
    "least loaded": {"stream_policy": "least_loaded"},
}


def reasons(result: Mapping[str, Any], names: Sequence[str], gpu: str, steps: int) -> Iterator[dict[str, Any]]:
    """A row for each list, with the time of a step under `streams` by what is changed [us]."""
    bounds = {row["workload"]: row["bound"] for row in result["rows"]}
    for name in names or bounds:
        workload = make_workload(Spec.parse(name), "host")
        machine = with_host(gpu_of_list(gpu_named(gpu), workload, bounds[name]), 1.0)
        row: dict[str, Any] = {"workload": name}
        for what, other in machines(machine).items():
            row[what] = round(modelled(workload, "streams", other, steps), 1)
        for what, options in OPTIONS.items():
            row[what] = round(modelled(workload, "streams", machine, steps, **options), 1)
        yield row
        workload.close()
