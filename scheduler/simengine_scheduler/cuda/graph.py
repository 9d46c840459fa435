"""Executable CUDA graphs of kernel launches with given dependencies.

They are built through `cuda-bindings`, because CuPy can only capture graphs from streams.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple


def _driver() -> Any:
    try:
        from cuda.bindings import driver  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise RuntimeError(
            f"executors of CUDA graphs need cuda-bindings, which cannot be imported ({error}); install "
            f"simengine[cuda13] or simengine[cuda12], or choose executor 'streams'"
        ) from error
    return driver


def _checked(result: tuple[Any, ...]) -> Any:
    """Return what a driver function returned besides its status. Raises RuntimeError unless the status is success."""
    if int(result[0]) != 0:
        raise RuntimeError(f"CUDA reports {result[0].name} while a graph is built")
    return result[1] if len(result) > 1 else None


class Template(NamedTuple):
    """What an executable graph was made from: the graph, and for each launch its kernel node and parameters."""

    graph: Any
    nodes: list[Any]
    parameters: list[Any]


def build(
    launches: Sequence[Any], waits: Sequence[Sequence[int]], events: Sequence[tuple[int, int]] | None = None
) -> int:
    """Return the handle of an executable graph.

    Args:
        launches: `CudaLaunch`es. Their packed arguments are copied.
        waits: for each launch the positions of the earlier launches that must have ended before it starts.
        events: for each launch a pair of timed events to record at its start and end, or None.
    """
    handle, template = build_updatable(launches, waits, events)
    _driver().cuGraphDestroy(template.graph)
    return handle


def build_updatable(
    launches: Sequence[Any], waits: Sequence[Sequence[int]], events: Sequence[tuple[int, int]] | None = None
) -> tuple[int, Template]:
    """Return the handle of an executable graph, and the template that `update` needs, which must outlive the graph."""
    driver = _driver()
    template = Template(_checked(driver.cuGraphCreate(0)), [], [])
    try:
        ends: list[Any] = []
        for i, (launch, before) in enumerate(zip(launches, waits, strict=True)):
            behind = [ends[other] for other in before]
            if events is not None:
                behind = [_mark(driver, template.graph, behind, events[i][0])]
            parameters = _parameters(driver, launch)
            node = _checked(driver.cuGraphAddKernelNode(template.graph, behind or None, len(behind), parameters))
            template.nodes.append(node)
            template.parameters.append(parameters)
            ends.append(node if events is None else _mark(driver, template.graph, [node], events[i][1]))
        return int(_checked(driver.cuGraphInstantiate(template.graph, 0))), template
    except BaseException:
        driver.cuGraphDestroy(template.graph)
        raise


def build_overlapping(launches: Sequence[Any], ordered: int) -> int:
    """Return the handle of an executable graph whose launches run together, once the first `ordered` have run.

    Each launch starts once every block of the launch before it runs and has executed griddepcontrol.launch_dependents.
    Branches of a graph do not ensure this: a branch may wait for multiprocessors or for a queue that another one holds.
    Needs compute capability 9.
    """
    driver = _driver()
    stream = _checked(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
    try:
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        with _without_collection():
            _checked(driver.cuStreamBeginCapture(stream, mode))
            try:
                for i, launch in enumerate(launches):
                    config = _configuration(driver, launch, stream, overlapping=i >= ordered)
                    function, *_, table = launch.node()
                    _checked(driver.cuLaunchKernelEx(config, driver.CUfunction(function), table, 0))
            finally:
                graph = _checked(driver.cuStreamEndCapture(stream))
        try:
            return int(_checked(driver.cuGraphInstantiate(graph, 0)))
        finally:
            driver.cuGraphDestroy(graph)
    finally:
        driver.cuStreamDestroy(stream)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Suspend garbage collection. An object that it finalises may wait for the device, which would end a capture."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _configuration(driver: Any, launch: Any, stream: Any, overlapping: bool) -> Any:
    _, grid, block, shared, _ = launch.node()
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid
    config.blockDimX, config.blockDimY, config.blockDimZ = block
    config.sharedMemBytes = shared
    config.hStream = stream
    attribute = driver.CUlaunchAttribute()
    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    attribute.value.programmaticStreamSerializationAllowed = 1
    config.attrs = [attribute] if overlapping else []
    config.numAttrs = int(overlapping)
    return config


def update(graph: int, template: Template, node: int, launch: Any) -> None:
    """Give a node, by its position, the present arguments of its launch. Graphs that are running keep theirs."""
    driver, parameters = _driver(), template.parameters[node]
    parameters.kernelParams = launch.node()[-1]
    _checked(driver.cuGraphExecKernelNodeSetParams(driver.CUgraphExec(graph), template.nodes[node], parameters))


def switch(graph: int, template: Template, on: Sequence[int], off: Sequence[int]) -> None:
    """Enable and disable nodes, by their positions. Graphs that are running keep those that they had."""
    driver = _driver()
    executable, handles = driver.CUgraphExec(graph), template.nodes
    for flag, nodes in ((1, on), (0, off)):
        for node in nodes:
            _checked(driver.cuGraphNodeSetEnabled(executable, handles[node], flag))


def _mark(driver: Any, graph: Any, behind: list[Any], event: int) -> Any:
    return _checked(driver.cuGraphAddEventRecordNode(graph, behind or None, len(behind), driver.CUevent(event)))


def _parameters(driver: Any, launch: Any) -> Any:
    function, grid, block, shared, table = launch.node()
    parameters = driver.CUDA_KERNEL_NODE_PARAMS()
    parameters.func = driver.CUfunction(function)
    parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ = grid
    parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ = block
    parameters.sharedMemBytes = shared
    parameters.kernelParams = table
    return parameters


def destroy(graph: int, template: Template | None = None) -> None:
    """Destroy an executable graph, and the template that it was made from, if there is one."""
    driver = _driver()
    _checked(driver.cuGraphExecDestroy(driver.CUgraphExec(graph)))
    if template is not None:
        _checked(driver.cuGraphDestroy(template.graph))
