"""A window scheduler for kernel calls: out-of-order issue with hazard checks at run time. It knows no physics.

    segments = Segments()
    x, y = segments.intern("x"), segments.intern("y")
    launch = CudaLaunch.from_kernel(kernel, (64,), (256,), (x_array, y_array))
    call = KernelCall("scale", launch, reads=(x,), writes=(y,))
    with make_executor("streams", segments=segments) as executor:
        trace = executor.run([[call]])

The names here are those that a first program needs. Each folder has one subject, and imports only from folders above
it in this list:

    native     compiled code that checks and issues calls, and what builds it
    core       calls, segments, hazards, the window, policies
    tracing    what ran when, whether it was legal, pictures
    launch     kernels and functions bound to arguments
    cuda       driver calls and CUDA graphs
    planning   order and streams of whole runs of calls
    jobs       jobs of executor `pipeline`
    device     a window on the GPU, for executor `device`
    executors  one file each
    gpu_model  a GPU in virtual time, for executor `simulated`
    registry   executors by name
    study      workloads and measurements
    service    several processes that share one processor
    testing    stand-ins for a GPU
"""

from .core.calls import AwaitCounts, FixedList, KernelCall
from .core.errors import CallError
from .core.segments import Segments
from .core.window import Window
from .executors.base import Executor, Options
from .launch.cuda import CudaLaunch
from .launch.host import HostLaunch, PythonLaunch
from .launch.making import Calls, read, update, write
from .registry import make_executor
from .tracing.trace import Trace
from .tracing.validation import validate

__all__ = [
    "AwaitCounts",
    "CallError",
    "Calls",
    "CudaLaunch",
    "Executor",
    "FixedList",
    "HostLaunch",
    "KernelCall",
    "Options",
    "PythonLaunch",
    "Segments",
    "Trace",
    "Window",
    "make_executor",
    "read",
    "update",
    "validate",
    "write",
]
