"""A model of a GPU and its host in virtual time: what kernel lists would take under each way of executing them.

`make_executor("simulated", segments=..., model="streams", gpu="h200")` is the way in. Nothing here needs a GPU.
"""

from .presets import GPUS, gpu_named
from .spec import GpuSpec, HostSpec

__all__ = ["GPUS", "GpuSpec", "HostSpec", "gpu_named"]
