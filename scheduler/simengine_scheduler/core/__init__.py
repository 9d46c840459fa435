"""The core: what a kernel call touches, which calls must wait for which, and what may run next.

Everything here is pure Python without a GPU, threads or a clock. The modules, in the order in which a call meets them:

    segments      names for pieces of memory
    calls         a kernel call with the segments that it reads, writes and updates
    counted       lists of a known form, in which counts choose the calls
    emission      many emitters become one program order
    hazards       which earlier calls a call must wait for
    window        a bounded number of calls in flight, each pending, ready or executing
    policies      which ready call goes first, and to which stream
    dependencies  the same hazards for a whole list at once, as a graph
    overlaps      which of many lists conflict with each other
    errors        the error that names a failed call
"""

from .calls import IDLE, AwaitCounts, Cost, Emitter, FixedList, Idle, Item, KernelCall, Launch, Tag
from .counted import Arrival, Counted, CountedList
from .emission import Feeder
from .errors import CallError
from .policies import ORDER_POLICIES, STREAM_POLICIES, StreamState
from .segments import Segments
from .window import Window

__all__ = [
    "IDLE",
    "ORDER_POLICIES",
    "STREAM_POLICIES",
    "Arrival",
    "AwaitCounts",
    "CallError",
    "Cost",
    "Counted",
    "CountedList",
    "Emitter",
    "Feeder",
    "FixedList",
    "Idle",
    "Item",
    "KernelCall",
    "Launch",
    "Segments",
    "StreamState",
    "Tag",
    "Window",
]
