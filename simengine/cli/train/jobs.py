"""The trainings of one call of `simengine train`: one, one for each seed, or one for each task of the suite."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from threading import Thread
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from simengine.cli.train.films import Films
from simengine.cli.train.progress import shown
from simengine.errors import SimengineError

if TYPE_CHECKING:
    from simengine_training import Arguments, Result
    from simengine_training.curve import Row


class Job(NamedTuple):
    """A training.

    Attributes:
        name: what its lines start with.
        folder: its folder.
        arguments: its arguments; None to go on with what the folder holds.
        repeatable: whether the same call goes on with a training that is in the folder, or takes it as it is if it is
            finished; if not, such a folder is refused.
    """

    name: str
    folder: Path
    arguments: Arguments | None
    repeatable: bool = False


class Extras(NamedTuple):
    """What a call writes beside what every training does.

    Attributes:
        tensorboard: event files of TensorBoard.
        videos: films of the evaluated policies.
        imports: modules that register environments, for the films.
    """

    tensorboard: bool
    videos: bool
    imports: list[str]


class Limits(NamedTuple):
    """When a call ends.

    Attributes:
        began: `time.perf_counter()` at the start of the program.
        seconds: time after which it ends; None for no limit.
    """

    began: float
    seconds: float | None

    @property
    def left(self) -> float | None:
        """Seconds that are left; None if there is no limit."""
        return None if self.seconds is None else max(0.0, self.seconds - (perf_counter() - self.began))


def run_job(job: Job, limits: Limits, began: float, extras: Extras, trainer: Any) -> Result:
    """Run a training, or go on with it, and show its progress.

    Args:
        job: the training.
        limits: when the call ends.
        began: `time.perf_counter()` from which its times count.
        extras: what else is written.
        trainer: what has `train` and `resume`; see `simengine.cli.train.on_ray`.
    """
    if job.arguments is not None:
        _compile_ahead(job.arguments)
    # Optax and JAX take a second to import. The other commands need not wait for them.
    from simengine_training import Arguments, run
    from simengine_training.folder import read_summary

    keep_programs()
    there = job.arguments is None or (job.repeatable and (job.folder / "summary.json").exists())
    summary = read_summary(job.folder) if there else None
    arguments = Arguments(**summary["arguments"]) if summary else job.arguments
    assert arguments is not None
    if summary and job.arguments not in (None, arguments):
        raise ValueError(f"{job.folder} holds a training with other settings; name another folder with --out")
    if summary and summary["finished"] and job.repeatable:
        return run.finished(job.folder)
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.showwarning = _told(warnings.showwarning)
        films = stack.enter_context(Films(job.folder, extras.imports)) if extras.videos else None
        writers: list[Callable[[Row], None]] = [stack.enter_context(shown(arguments, job.name))]
        if extras.tensorboard:
            writers.append(stack.enter_context(closing(_tensorboard(job.folder))))
        if films:
            writers.append(films)

        def on_row(row: Row) -> None:
            for write in writers:
                write(row)

        if there:
            return trainer.resume(job.folder, on_row, max_seconds=limits.left, began=began)
        return trainer.train(arguments, job.folder, on_row, max_seconds=limits.left, began=began)


def _compile_ahead(arguments: Arguments) -> None:
    """Compile XLA's handler of steps in a thread, while packages are imported and JAX opens the GPU."""
    # not in the thread: two threads that import may meet half a module
    from simengine.xla.handler_build import build_handler

    platform = {"cuda": "CUDA", "host": "cpu"}.get(arguments.env_arguments.get("backend", ""))
    if platform is None:
        return

    def build() -> None:
        with suppress(SimengineError, OSError):  # the training meets the same error, and says it
            build_handler(platform)

    Thread(target=build, name="handler", daemon=True).start()


def _told(others: Any) -> Any:
    """How warnings are shown: those of trainings as a sentence, and others as before."""
    from simengine_training.checkpoint import DamagedCheckpointWarning

    def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
        if issubclass(category, DamagedCheckpointWarning):
            print(f"simengine: {message}", file=sys.stderr)
        else:
            others(message, category, *where)

    return show


def keep_programs() -> None:
    """Keep what JAX compiles beside the engine's kernels, unless the user has chosen a folder, so that the next
    training of the same shape starts at once."""
    import jax

    from simengine_scheduler.native.cache import cache_dir

    if jax.config.jax_compilation_cache_dir is None:  # type: ignore[attr-defined]
        jax.config.update("jax_compilation_cache_dir", str(cache_dir() / "xla"))


def _tensorboard(folder: Path) -> Any:
    from simengine_training.tensorboard import TensorBoard

    return TensorBoard(folder / "tensorboard")
