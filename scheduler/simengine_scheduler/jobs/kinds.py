"""Kinds of jobs: kernels that run again and again on other arguments. Each stream has working memory of its own.

def build(arguments):
    work = cupy.empty(size, np.float32)  # this stream's own
    load = CudaLaunch.from_kernel(first, grid, block, (arguments["source"], work), buffers=arguments.buffers)
    store = CudaLaunch.from_kernel(second, grid, block, (work, arguments["result"]), buffers=arguments.buffers)
    return [KernelCall("first", load, (), (w,)), KernelCall("second", store, (w,), ())]

kind = JobKind("filter", build)
jobs = [KernelCall("filter", kind.job(source=x, result=y), (x_id,), (y_id,)) for x, x_id, y, y_id in batches]

A job is an ordinary launch, which every executor that issues to streams or threads can run. Executor `pipeline` also
moves jobs from one worker to another, and launches each as a graph of its calls. A job cannot be a node of a graph of
other calls.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core.calls import KernelCall
from ..launch.arguments import Buffer, BufferSet, Number

Value = int | Buffer | tuple[int, int]
"""An argument of a job: a number, or memory as a buffer or as its address and bytes."""


class JobArguments:
    """The arguments of a kind of job: under each name a `Buffer`, or a `Number` for an int.

    Attributes:
        buffers: the set that launches with these arguments must be given, so that they are packed again for each job.
        version: grows with every job whose arguments differ from those of the job before.
    """

    def __init__(self, job: str, values: Mapping[str, Value]) -> None:
        self.buffers = BufferSet()
        self.version = 0
        self._job = job
        self._objects: dict[str, Buffer | Number] = {}
        for name, value in values.items():
            number = type(value) is int
            self._objects[name] = Number(value) if number else self.buffers.add(name, *_place(value))  # type: ignore[arg-type]

    def __getitem__(self, name: str) -> Buffer | Number:
        if name not in self._objects:
            raise KeyError(f"jobs {self._job!r} have no argument {name!r}; they have {', '.join(self._objects)}")
        return self._objects[name]

    def holds(self, argument: Any) -> bool:
        """Whether an argument of a launch is one of these arguments."""
        base = argument[0] if isinstance(argument, tuple) and argument else argument
        return any(base is own for own in self._objects.values())

    def bind(self, values: Mapping[str, Value]) -> None:
        """Take the arguments of a job. Raises ValueError unless names and types are those of the first job."""
        if values.keys() != self._objects.keys():
            raise ValueError(
                f"a job {self._job!r} has arguments {', '.join(values)}; the first one had {', '.join(self._objects)}"
            )
        changed = False
        for name, value in values.items():
            own = self._objects[name]
            if isinstance(own, Number) != (type(value) is int):
                raise ValueError(
                    f"argument {name!r} of a job {self._job!r} is {'a number' if type(value) is int else 'memory'}, "
                    f"unlike that of the first one; give every job of a kind the same types"
                )
            if isinstance(own, Number):
                changed |= own.value != value
                own.value = value  # type: ignore[assignment]
            elif (own.ptr, own.nbytes) != (place := _place(value)):  # type: ignore[arg-type]
                changed = True
                own.rebind(*place)
        if changed:
            self.version += 1
            self.buffers.note_move()  # also where only numbers have changed


def _place(value: Buffer | tuple[int, int]) -> tuple[int, int]:
    return (value.ptr, value.nbytes) if isinstance(value, Buffer) else value


def _value(job: str, name: str, value: Any) -> Value:
    """Return an argument of a job: a number, a buffer, which may move, or the address and bytes of an array."""
    if type(value) is int or isinstance(value, Buffer):
        return value
    if isinstance(value, tuple) and len(value) == 2:
        return int(value[0]), int(value[1])
    for interface in ("__cuda_array_interface__", "__array_interface__"):
        if hasattr(value, interface):
            return int(getattr(value, interface)["data"][0]), int(value.nbytes)
    raise TypeError(
        f"argument {name!r} of a job {job!r} is a {type(value).__name__}; pass an array, a Buffer, an int, or an "
        f"(address, bytes) pair"
    )


class Instance:
    """A kind of job on one stream: its calls, with their working memory."""

    def __init__(self, kind: JobKind, values: Mapping[str, Value]) -> None:
        self.arguments = JobArguments(kind.name, values)
        self.calls: Sequence[KernelCall] = kind.build(self.arguments)
        if not self.calls:
            raise ValueError(f"the build function of jobs {kind.name!r} returned no calls; return at least one")


class JobKind:
    """A kind of job.

    The segments of the calls that `build` returns say how these depend on each other. The call of a job itself says
    what the job reads and writes.

    Args:
        name: shown in errors.
        build: makes the calls of a job from its arguments. It is called once for each stream and thread that runs jobs
            of this kind. One job at a time uses the memory that it allocates, such as CuPy arrays that its launches
            keep alive. What it enqueues must have completed when it returns.
    """

    def __init__(self, name: str, build: Callable[[JobArguments], Sequence[KernelCall]]) -> None:
        self.name = name
        self.build = build
        self._instances: dict[tuple[int, int], Instance] = {}

    def job(self, **arguments: Any) -> JobLaunch:
        """Return the launch of a job. An argument is an array, a `Buffer`, an (address, bytes) pair or an int."""
        return JobLaunch(self, arguments)

    def instance(self, stream: int, values: Mapping[str, Value]) -> Instance:
        """Return what runs jobs of this kind on a stream, bound to the arguments of one job."""
        place = stream, threading.get_ident()
        instance = self._instances.get(place)
        if instance is None:
            instance = self._instances[place] = Instance(self, values)
        else:
            instance.arguments.bind(values)
        return instance

    def release(self, stream: int) -> None:
        """Forget what ran jobs on a stream, and its working memory."""
        for place in [place for place in self._instances if place[0] == stream]:
            del self._instances[place]


class JobLaunch:
    """One job: a kind and its arguments, which it keeps alive.

    Attributes:
        in_graphs: False, since a job cannot be a node of a graph.
    """

    __slots__ = ("_given", "kind", "values")
    in_graphs = False

    def __init__(self, kind: JobKind, arguments: Mapping[str, Any]) -> None:
        self.kind = kind
        self.values = {name: _value(kind.name, name, value) for name, value in arguments.items()}
        self._given = arguments

    def issue(self, stream: int) -> None:
        """Issue the calls of the job one after another, on the working memory of the stream."""
        for call in self.kind.instance(stream, self.values).calls:
            call.launch.issue(stream)

    def node(self) -> Any:
        """Raise TypeError: a job is many calls, on memory that depends on the stream."""
        raise TypeError(
            f"a job {self.kind.name!r} cannot be a node of a graph; run it by executor 'pipeline', 'streams' or "
            f"'serial'"
        )
