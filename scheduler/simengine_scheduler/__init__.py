"""A window scheduler for kernel calls: out-of-order issue with run-time hazard checks. It knows no physics.

segments = Segments()
x, y = segments.intern("x"), segments.intern("y")
call = KernelCall("scale", CudaLaunch.from_kernel(kernel, (64,), (256,), (x_array, y_array)), reads=(x,), writes=(y,))
executor = make_executor("streams", segments=segments)
trace = executor.run([[call]])
"""

from .calls import IDLE, AwaitCounts, Cost, Emitter, FixedList, Item, KernelCall, Launch, Tag
from .device.body import DeviceBody, DeviceTask, Tiling
from .device.linking import compile_body
from .errors import CallError
from .executors import EXECUTORS, AutoExecutor, Executor, Options, make_executor, run_repeatedly
from .launch import Buffer, BufferSet, CudaLaunch, HostLaunch, Number, PythonLaunch
from .list_recorder import ListRecorder
from .pipeline.kinds import JobArguments, JobKind, JobLaunch
from .policies import ORDER_POLICIES, STREAM_POLICIES, StreamState
from .profiles import Need, Profile
from .recording import LaunchShape, RecordedList
from .segments import Segments
from .service import (
    Client,
    ClientCall,
    ListFailed,
    Owner,
    OwnerLost,
    QueueFull,
    RequestRefused,
    Ticket,
    connect,
    serve,
)
from .trace import Counters, Event, Step, Trace
from .validation import validate
from .window import Window

__all__ = [
    "EXECUTORS",
    "IDLE",
    "ORDER_POLICIES",
    "STREAM_POLICIES",
    "AutoExecutor",
    "AwaitCounts",
    "Buffer",
    "BufferSet",
    "CallError",
    "Client",
    "ClientCall",
    "Cost",
    "Counters",
    "CudaLaunch",
    "DeviceBody",
    "DeviceTask",
    "Emitter",
    "Event",
    "Executor",
    "FixedList",
    "HostLaunch",
    "Item",
    "JobArguments",
    "JobKind",
    "JobLaunch",
    "KernelCall",
    "Launch",
    "LaunchShape",
    "ListFailed",
    "ListRecorder",
    "Need",
    "Number",
    "Options",
    "Owner",
    "OwnerLost",
    "Profile",
    "PythonLaunch",
    "QueueFull",
    "RecordedList",
    "RequestRefused",
    "Segments",
    "Step",
    "StreamState",
    "Tag",
    "Ticket",
    "Tiling",
    "Trace",
    "Window",
    "compile_body",
    "connect",
    "make_executor",
    "run_repeatedly",
    "serve",
    "validate",
]
