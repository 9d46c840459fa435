"""A window on the GPU, for executor `device`.

    segments   what calls touch, as bits, and hazards by them
    book       calls and lists as tables on the GPU
    ring       the host names calls and lists to a window that runs
    workers    which bodies share a kernel that stays on the GPU
    linking    bodies are compiled and linked to workers
    occupancy  how many blocks of each worker fit on the GPU together
    sessions   a window and workers that run together
    recording  what they write down of a list
    programs   the loaded kernels
    machine    what the executor needs of a GPU

`protocol.cuh` is the window and its workers in device code: `desk.cuh`, `feed.cuh` and `window.cuh` are the window,
`choice.cuh` is what a worker runs next.
"""

from .linking import compile_body

__all__ = [
    "compile_body",
]
