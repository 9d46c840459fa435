"""GPUs by name. Comments say where each figure comes from; docs/simulated.md tells how those of the H200 were found."""

from __future__ import annotations

from ..core.errors import choose_one
from .spec import GpuSpec, HostSpec

_H200 = GpuSpec(
    "h200",
    multiprocessors=132,
    # Measured with empty kernels, with CuPy 14 and Python 3.12: python -m benchmarks.launch_costs.
    dispatch=2.82e-6,
    chain=1.30e-6,
    mark=0.01e-6,
    spacing=0.20e-6,
    node=0.70e-6,
    visible=1e-6,
    # Measured with a persistent kernel of 528 blocks.
    ticket=10e-9,
    # Taken from traces of executor `device` (simengine bench scheduler, docs/decisions/0006-device-executor.md).
    admit=1.0e-6,
    release=1.68e-6,
    # Fitted to 64 worlds of ant, relative to `graph-cached`.
    worker=1.18,
    # Assumed: no recorded list depends on it.
    contention=0.5,
    # Fitted together with the times of the host below; empty kernels show 1.55e-6.
    crossing=6.28e-6,
    host=HostSpec(
        launch=3.68e-6,
        record=0.25e-6,
        wait=0.24e-6,
        query=1.35e-6,
        launch_graph=3.68e-6,
        # Fitted to 64 worlds of ant and of six models in one batch: python -m benchmarks.gpu_model fit.
        emit=4.86e-6,
        keep=0.90e-6,
        track=3.91e-6,
        plan=11.2e-6,
        build=24.0e-6,
        build_node=13.2e-6,
        # Fitted to lists whose graphs each had a tracker of their own: with one tracker for all, repeated lists do not
        # show it.
        resolve=14.9e-6,
    ),
)
_H100 = GpuSpec(
    "h100",
    multiprocessors=132,
    # Measured with empty kernels by compiled code: python -m benchmarks.driver_costs. From a launch until the host sees
    # its end there are 5 us besides launch, record and query.
    dispatch=4.0e-6,
    visible=1.0e-6,
    node=0.97e-6,
    join=1.2e-6,
    # As on the H200, by empty kernels; not measured here.
    chain=1.30e-6,
    crossing=1.55e-6,
    spacing=0.20e-6,
    # What calls do to each other is not known for lists whose calls have no recorded shapes.
    contention=0.0,
    host=HostSpec(
        launch=3.62e-6,
        hop=0.79e-6,
        record=0.28e-6,
        wait=0.20e-6,
        query=0.34e-6,
        launch_graph=2.1e-6,
        launch_node=4e-9,
        launch_branches=3.4e-6,
        build=10e-6,
        build_node=9e-6,
        # Measured with a driver that does nothing, on another host:
        # benchmarks/results/run_costs_in_flow_epyc_2_cores.json.
        run=10e-6,
        resume=0.7e-6,
        keep=0.12e-6,
        keep_polled=0.37e-6,
        keep_piece=0.06e-6,  # benchmarks/results/piece_costs_epyc_2_cores.json
        # What Python's generators take beyond that for an item, on the same host.
        emit=0.1e-6,
        compiled=True,
    ),
)
GPUS: dict[str, GpuSpec] = {
    "h100": _H100,
    "h200": _H200,
    # The paper of ACS measured on an RTX 3060 and simulated an RTX 3070. Limits are those of compute capability 8.6.
    # Its text gives 410 to 1640 ns for a hazard check (windows of 8 and 32, so 51 ns a slot) and 5 to 20 us for a
    # synchronisation and a launch. Other figures are assumed: C++ on the host, and a device like the H200.
    "rtx3060": GpuSpec("rtx3060", multiprocessors=28, threads=1536, blocks=16, shared=102400),
    "rtx3070": GpuSpec("rtx3070", multiprocessors=46, threads=1536, blocks=16, shared=102400),
}


def gpu_named(gpu: object) -> GpuSpec:
    """Return a GPU by its name, or the `GpuSpec` that was given. Raises ValueError for a name that is not known."""
    if isinstance(gpu, GpuSpec):
        return gpu
    if not isinstance(gpu, str) or gpu not in GPUS:
        raise ValueError(f"unknown GPU {gpu!r}; {choose_one(gpu, sorted(GPUS))}, or give a GpuSpec")
    return GPUS[gpu]
