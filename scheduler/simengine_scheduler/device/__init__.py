"""A window on the GPU, for executor `device`.

    workers    which bodies share a kernel that stays on the GPU
    linking    bodies are compiled and linked to workers
    occupancy  how many blocks of each worker fit on the GPU together
    image      a list of calls as arrays
    layout     these arrays in the memory of the GPU
    programs   the loaded kernels

`protocol.cuh` is the window and its workers in device code.
"""

from .linking import compile_body

__all__ = [
    "compile_body",
]
