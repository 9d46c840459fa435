"""A model of a GPU and its host in virtual time: how long lists would take under each executor.

`make_executor("simulated", segments=..., model="streams", gpu="h200")` is the way in. Nothing here needs a GPU. Lists
recorded on a GPU by `ListRecorder` give the model durations of real kernels.
"""

from .list_recorder import ListRecorder
from .presets import GPUS, gpu_named
from .recording import LaunchShape, RecordedList
from .spec import GpuSpec, HostSpec

__all__ = [
    "GPUS",
    "GpuSpec",
    "HostSpec",
    "LaunchShape",
    "ListRecorder",
    "RecordedList",
    "gpu_named",
]
