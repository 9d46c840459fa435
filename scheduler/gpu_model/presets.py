"""GPUs by name. Where figures come from stands beside them; docs/simulated.md says how those of the H200 were found."""

from __future__ import annotations

from .spec import GpuSpec

GPUS: dict[str, GpuSpec] = {
    "h200": GpuSpec("h200", multiprocessors=132),
    # The paper of ACS measured on an RTX 3060 and simulated an RTX 3070. Limits are those of compute capability 8.6.
    # Its text gives a hazard check of 410 to 1640 ns (windows of 8 and 32, so 51 ns a slot) and 5 to 20 us for
    # synchronising and launching; what is not published is assumed to be as on the H200, with C++ on the host.
    "rtx3060": GpuSpec("rtx3060", multiprocessors=28, threads=1536, blocks=16, shared=102400),
    "rtx3070": GpuSpec("rtx3070", multiprocessors=46, threads=1536, blocks=16, shared=102400),
}


def gpu_named(gpu: str | GpuSpec) -> GpuSpec:
    """Return a GPU by name, or the one given. Raises ValueError for a name that is not known."""
    if isinstance(gpu, GpuSpec):
        return gpu
    if gpu not in GPUS:
        raise ValueError(f"unknown GPU {gpu!r}; choose one of {', '.join(sorted(GPUS))}, or give a GpuSpec")
    return GPUS[gpu]
