"""Trainings in the processes of a Ray cluster, one process for each device."""

from __future__ import annotations

import os
import socket
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any

from simengine_training.arguments import Arguments
from simengine_training.errors import MissingExtraError, TrainingError
from simengine_training.folder import read_summary

try:
    import ray
    from ray.util.placement_group import placement_group, remove_placement_group
    from ray.util.queue import Queue
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
except ModuleNotFoundError as error:
    raise MissingExtraError(
        "training on a Ray cluster needs the package 'ray', which is not installed; install it with: "
        "pip install 'simengine[ray]'"
    ) from error

if TYPE_CHECKING:
    from simengine_training.run import OnRow, Result

_POLL = 0.2  # seconds between two looks at the rows
_GRACE = 10.0  # seconds in which other processes may tell why one of them is gone
_START = 60.0  # seconds for which processors in use are waited for


@dataclass(frozen=True)
class _Task:
    """What every process of a training is told.

    Attributes:
        arguments: arguments of the training; None to resume it.
        folder: its folder, absolute.
        max_seconds: time after which it stops; None for no limit.
        elapsed: seconds since the start from which its times count.
        platform: platform that JAX uses; None for what it finds.
        cache: folder for compiled programs; None for none.
        imports: modules that register environments.
        path: the folder in which they are looked for first.
    """

    arguments: Arguments | None
    folder: Path
    max_seconds: float | None
    elapsed: float
    platform: str | None
    cache: str | None
    imports: tuple[str, ...]
    path: str


@dataclass(frozen=True)
class _Failure:
    """The sentence of an error in a process."""

    sentence: str


class Cluster:
    """A Ray cluster. `train` and `resume` are those of `simengine_training`, in one process for each device.

    Each process has a GPU of the cluster with the backend "cuda", and with "auto" or "jax" if there are enough. It has
    a CPU otherwise. Files are written by the first one, into a folder that all hosts must share.

    Args:
        address: address of the cluster, such as "192.168.0.1:6379"; None for the one that runs on this host, or else
            for a new one of this host alone, which ends with the context.
        imports: modules that register environments.

    Raises:
        TrainingError: no cluster answers at the address, or it does not let this program in.
    """

    def __init__(self, address: str | None = None, imports: Sequence[str] = ()):
        self._imports = tuple(imports)
        self._opened = not ray.is_initialized()
        if self._opened:
            if address:
                _reach(address)
            try:
                # rows and errors come back as values, so that nothing else is printed
                ray.init(address=address, log_to_driver=False, logging_level="error")
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise TrainingError(
                    f"the Ray cluster {f'at {address}' if address else 'of this host'} cannot be joined "
                    f"({str(error).splitlines()[0]}); set RAY_AUTH_MODE=token if it has a token, or call ray stop if "
                    "it has ended"
                ) from error

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the cluster."""
        if self._opened:
            ray.shutdown()

    def train(
        self,
        arguments: Arguments,
        folder: str | Path,
        on_row: OnRow | None = None,
        *,
        max_seconds: float | None = None,
        began: float | None = None,
    ) -> Result:
        """Train a new policy. See `simengine_training.train`; errors of the processes are TrainingErrors."""
        return self._run(arguments, True, Path(folder), on_row, max_seconds, began)

    def resume(
        self, folder: str | Path, on_row: OnRow | None = None, *, max_seconds: float | None = None,
        began: float | None = None,
    ) -> Result:  # fmt: skip
        """Go on with an interrupted training. See `simengine_training.resume`."""
        arguments = Arguments(**read_summary(folder)["arguments"])
        return self._run(arguments, False, Path(folder), on_row, max_seconds, began)

    def _run(
        self, arguments: Arguments, new: bool, folder: Path, on_row: OnRow | None, limit: float | None,
        began: float | None,
    ) -> Result:  # fmt: skip
        import jax

        began = perf_counter() if began is None else began
        gpu = _takes_gpus(arguments)
        cache = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
        with _workers(arguments.devices, gpu) as workers:
            platform = None if gpu else "cpu"
            task = _Task(
                arguments if new else None, folder.resolve(), limit, perf_counter() - began, platform, cache,
                self._imports, os.getcwd(),
            )  # fmt: skip
            rows = Queue(actor_options={"num_cpus": 0})
            try:
                coordinator = ray.get(workers[0].free_address.remote())
                work = [
                    worker.work.remote(task, coordinator, k, len(workers), rows) for k, worker in enumerate(workers)
                ]
                return _followed(work, rows, on_row)
            finally:
                rows.shutdown(force=True)


class _Worker:
    """A process of a training, which ends with it."""

    def free_address(self) -> str:
        """An address of this host that JAX's coordinator may take."""
        host = ray.util.get_node_ip_address()
        with socket.socket() as free:
            free.bind((host, 0))
            return f"{host}:{free.getsockname()[1]}"

    def work(self, task: _Task, coordinator: str, index: int, count: int, rows: Queue) -> Result | _Failure | None:
        """Do a part of a training. The first process returns the result, and puts rows and warnings into the queue."""
        try:
            import jax

            from simengine_training import run
            from simengine_training.processes import use_cpu_collectives

            if task.platform:
                jax.config.update("jax_platforms", task.platform)
            if task.cache:
                jax.config.update("jax_compilation_cache_dir", task.cache)
            use_cpu_collectives()
            jax.distributed.initialize(coordinator, count, index, cluster_detection_method="deactivate")
            sys.path.insert(0, task.path)
            for name in task.imports:
                import_module(name)
            first = index == 0
            if first:
                warnings.showwarning = lambda message, *_: rows.put(str(message))  # type: ignore[assignment]
            options: dict[str, Any] = {"max_seconds": task.max_seconds, "began": perf_counter() - task.elapsed}
            on_row = rows.put if first else None
            if task.arguments is None:
                result = run.resume(task.folder, on_row, **options)
            else:
                result = run.train(task.arguments, task.folder, on_row, **options)
            return result if first else None
        except Exception as error:  # the command says what it was, whatever it was
            return _Failure(str(error) or type(error).__name__)


def _reach(address: str) -> None:
    """Raise TrainingError if nothing listens at an address, for which Ray itself tries for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise TrainingError(
            f"no Ray cluster answers at {address} ({error}); start one with: ray start --head"
        ) from error


def _takes_gpus(arguments: Arguments) -> bool:
    """Whether a training takes GPUs of the cluster.

    Raises:
        TrainingError: the cluster has too few processors.
    """
    backend, there = arguments.env_arguments.get("backend", "auto"), ray.cluster_resources()
    gpu = backend == "cuda" or (backend != "host" and there.get("GPU", 0) >= arguments.devices)
    name = "GPU" if gpu else "CPU"
    if there.get(name, 0) < arguments.devices:
        raise TrainingError(
            f"devices is {arguments.devices}, and the Ray cluster has {there.get(name, 0):.0f} {name}s; lower devices, "
            "or add hosts to the cluster"
        )
    return gpu


@contextmanager
def _workers(count: int, gpu: bool) -> Iterator[list[Any]]:
    """Processes with a processor each, which are killed at the end, however it comes."""
    bundle = {"CPU": 1.0, "GPU": 1.0} if gpu else {"CPU": 1.0}
    group = placement_group([bundle] * count, strategy="PACK")
    workers: list[Any] = []
    try:
        if not group.wait(_START):
            raise TrainingError(
                f"{count} free {'GPUs' if gpu else 'CPUs'} of the Ray cluster were waited for in vain for {_START:.0f} "
                "seconds; end what uses them, or lower devices"
            )
        for k in range(count):
            place = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=k)
            options = {"num_cpus": 1, "num_gpus": int(gpu), "scheduling_strategy": place}
            workers.append(ray.remote(_Worker).options(**options).remote())
        yield workers
    finally:
        for worker in workers:
            ray.kill(worker)
        remove_placement_group(group)


def _followed(work: list[Any], rows: Queue, on_row: OnRow | None) -> Result:
    """Wait for the processes of a training, pass on the rows, and return the result of the first process.

    Raises:
        TrainingError: a process failed.
    """
    pending, result, lost = work, None, None
    while pending and (lost is None or monotonic() - lost[0] < _GRACE):
        done, pending = ray.wait(pending, timeout=_POLL)
        _pass_on(rows, on_row)
        for one in done:
            try:
                found = ray.get(one)
            except ray.exceptions.RayError as error:
                lost = lost or (monotonic(), error)
                continue
            if isinstance(found, _Failure):
                raise TrainingError(found.sentence)
            result = found or result
    if lost is not None or result is None:
        why = str(lost[1]).strip().splitlines()[0] if lost else "it returned nothing"
        raise TrainingError(
            f"a process of the training ended ({why}); look at the memory of its host, then resume the training"
        ) from (lost[1] if lost else None)
    return result


def _pass_on(rows: Queue, on_row: OnRow | None) -> None:
    """Hand on what the first process has put into the queue: rows, and texts of warnings."""
    for found in rows.get_nowait_batch(rows.qsize()):
        if isinstance(found, str):
            warnings.warn(found, stacklevel=2)
        elif on_row:
            on_row(found)
