"""Let one process do everything again and again, and see whether it grows.

    python -m benchmarks.soak --minutes 8 --backend host --json benchmarks/results/soak_host.json

A round steps a simulation whose groups come and go, changes parameters of worlds, resets some, saves the state, loads
it, and copies the simulation. About once a second these are measured: memory that the process holds, memory of it that
is in use, Python's memory blocks, threads and file handles; on CUDA also memory of the GPU, what CuPy's pool holds of
it, and what arrays have in use of that. The driver has the rest of it, for kernels, graphs and streams. A line is
fitted to each of them over the second half of the time.

Executors keep the graphs and lists of the last runs. `--graphs` makes these few, so that they are full in the first
half. Tables of what groups touch, and of the hazards between these, are full after some 250 rounds, and each kernel is
loaded once. What grows in the second half of 500 rounds is then no cache. Memory that is in use tells a leak of a few
KiB a round; memory that is held also has gaps between the pieces in use, and rises and falls by megabytes.

The exit code is 0 if none grows: if the line rises by less than three standard errors, or by less than 2 KiB or 16
blocks a round, one percent of the memory held, or half a thread or file handle. It is 1 if one does, 2 for a wrong
call.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import os
import subprocess
import sys
import tempfile
import time
from array import array
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from simengine import Model, Simulation, load_model
from simengine.cli.options.settings import BACKEND_CHOICES, positive
from simengine.cli.results.machine import result_header
from simengine.cli.results.output import progress_bar
from simengine.cli.results.result_file import write_json
from simengine.zoo import random_robot

MODELS = ("ant", "hopper", "inverted_double_pendulum", "grasp", "quadruped")
_ROBOTS = 3
_MOST_GROUPS, _MOST_WORLDS = 4, 24
_STEPS = 20  # of a round
_PERIOD = 1.0  # seconds between measurements
_ERRORS = 3.0  # standard errors by which a line must rise to count
_FEWEST = 500  # rounds, of which caches fill in the first half
_GRAPHS = 8  # graphs and lists that executors keep
_SHARE, _PIECES = 0.01, 0.5  # growth of memory held, and of threads and file handles, that does not count
# growth in a round that does not count
_A_ROUND = {"in_use_mib": 2 / 1024, "gpu_in_use_mib": 2 / 1024, "python_blocks": 16.0}
_FIELDS = (
    *("memory_mib", "in_use_mib", "python_blocks", "threads", "file_handles"),
    *("gpu_memory_mib", "gpu_pool_mib", "gpu_in_use_mib"),
)


class Trend(NamedTuple):
    """A line through measurements.

    Attributes:
        name: what was measured.
        first, last: first and last measurement.
        growth: by how much the line rises over the second half of the time.
        error: standard error of the growth.
        allowed: growth that does not count.
    """

    name: str
    first: float
    last: float
    growth: float
    error: float
    allowed: float

    @property
    def is_flat(self) -> bool:
        """Whether the growth does not count, or may be noise."""
        return self.growth <= max(self.allowed, _ERRORS * self.error)


class _Mallinfo(ctypes.Structure):
    """`struct mallinfo2` of the GNU C library."""

    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks".split()]
    _fields_ += [(name, ctypes.c_size_t) for name in "uordblks fordblks keepcost".split()]


class Soak:
    """A simulation that changes all the time.

    Args:
        backend: backend of the simulation.
        seed: equal seeds do equal things.
        folder: folder for saved states.
        graphs: graphs and lists that executors keep.
    """

    def __init__(self, backend: str, seed: int, folder: Path, graphs: int = _GRAPHS):
        self._rng = np.random.default_rng(seed)
        self._folder = folder
        self._models: list[Model] = [load_model(name) for name in MODELS]
        self._models += [load_model(random_robot(seed=k)) for k in range(_ROBOTS)]
        groups: list[tuple[Model, int]] = [(self._models[0], 8), (self._models[1], 8)]
        options = None if backend == "jax" else {"graphs": graphs}
        self.sim = Simulation(groups, backend=backend, on_nonfinite="reset", executor_options=options)
        self.backend = self.sim.backend

    def round(self) -> None:
        """Change groups, parameters and worlds, step, save, load and copy."""
        sim, rng = self.sim, self._rng
        if len(sim.groups) > 1 and (len(sim.groups) >= _MOST_GROUPS or rng.random() < 0.5):
            sim.remove_group(sim.groups[rng.integers(len(sim.groups))])
        model = self._models[rng.integers(len(self._models))]
        sim.add_group(model, int(rng.integers(1, _MOST_WORLDS + 1)))
        for group in sim.groups:
            shape = (group.num_worlds, 1)
            group.set_params(body_mass=rng.uniform(0.8, 1.2, shape) * group.model.mj.body_mass)
            group.reset(np.flatnonzero(rng.random(group.num_worlds) < 0.3))
        sim.step(_STEPS)
        path = self._folder / "state.npz"
        sim.save_state(path)
        with sim.copy() as other:
            other.step(2)
        sim.step(2)
        sim.load_state(path)
        sim.forward()

    def close(self) -> None:
        """Close the simulation."""
        self.sim.close()


def measured(backend: str) -> dict[str, float]:
    """What this process holds now, without what it has freed and the C library keeps."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    found = {
        "memory_mib": pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
        "threads": float(len(os.listdir("/proc/self/task"))),
        "file_handles": float(len(os.listdir("/proc/self/fd"))),
    }
    found["python_blocks"] = float(sys.getallocatedblocks())
    with contextlib.suppress(AttributeError):  # another C library
        mallinfo2 = ctypes.CDLL(None).mallinfo2
        mallinfo2.restype = _Mallinfo
        info = mallinfo2()
        found["in_use_mib"] = (info.uordblks + info.hblkhd) / 2**20
    if backend == "cuda":
        import cupy

        found["gpu_memory_mib"] = _gpu_memory()
        pool = cupy.get_default_memory_pool()
        found["gpu_pool_mib"], found["gpu_in_use_mib"] = pool.total_bytes() / 2**20, pool.used_bytes() / 2**20
    return found


def _gpu_memory() -> float:
    """Memory of GPUs that this process holds, or that all programs hold where the driver tells no more [MiB]."""
    question = ["nvidia-smi", "--query-compute-apps=pid,used_gpu_memory", "--format=csv,noheader,nounits"]
    with contextlib.suppress(OSError):
        own = of_process(subprocess.run(question, capture_output=True, text=True, check=False).stdout, os.getpid())
        if own is not None:
            return own
    import cupy

    free, total = cupy.cuda.runtime.memGetInfo()
    return float(total - free) / 2**20


def of_process(answer: str, pid: int) -> float | None:
    """Memory of one process by lines such as "4711, 512", of which it has one for each GPU; None without one."""
    entries = (line.split(",") for line in answer.splitlines() if line.count(",") == 1)
    own = [used.strip() for number, used in entries if number.strip() == str(pid)]
    return float(sum(map(int, own))) if own and all(used.isdigit() for used in own) else None


def trend(name: str, seconds: np.ndarray, values: np.ndarray, rounds: float) -> Trend:
    """Fit a line to the second half of some measurements.

    Args:
        name: what was measured.
        seconds: when, (n,) [s].
        values: the measurements, (n,).
        rounds: number of rounds in the whole time.
    """
    late = seconds >= seconds[-1] / 2
    x, y = seconds[late], values[late]
    x = x - x.mean()
    slope = float((x @ y) / (x @ x))
    rest = y - y.mean() - slope * x
    error = float(np.sqrt((rest @ rest) / max(len(x) - 2, 1) / (x @ x)))
    span = float(x[-1] - x[0])
    allowed = _SHARE * float(y.mean()) if name.endswith("_mib") else _PIECES
    if name in _A_ROUND:
        allowed = _A_ROUND[name] * rounds * span / float(seconds[-1] - seconds[0])
    return Trend(name, float(values[0]), float(values[-1]), slope * span, error * span, allowed)


def soak(minutes: float, backend: str, seed: int, graphs: int) -> tuple[str, int, list[Trend]]:
    """Go round and round. Returns the backend, the number of rounds, and a trend of each thing that was measured."""
    # arrays, because each number of a list would be one of the blocks that are counted
    moments, samples = array("d"), array("d")
    rounds = 0
    with tempfile.TemporaryDirectory(prefix="simengine-soak-") as folder:
        running = Soak(backend, seed, Path(folder), graphs)
        running.round()  # builds kernels
        start = time.monotonic()
        with progress_bar("seconds", int(60 * minutes)) as advance:
            while (now := time.monotonic() - start) < 60 * minutes:
                if not moments or now - moments[-1] >= _PERIOD:
                    advance(int(now) - int(moments[-1]) if moments else 0)
                    found = measured(running.backend)
                    names = [name for name in _FIELDS if name in found]
                    moments.append(now)
                    samples.extend(found[name] for name in names)
                running.round()
                rounds += 1
        running.close()
    seconds, values = np.array(moments), np.array(samples).reshape(len(moments), -1).T
    lines = [trend(name, seconds, line, rounds) for name, line in zip(names, values, strict=True)]
    return running.backend, rounds, lines


def as_row(line: Trend) -> dict[str, Any]:
    """A trend as a row of a result file."""
    numbers = {name: round(value, 3) for name, value in line._asdict().items() if name != "name"}
    return {"name": line.name, **numbers, "flat": line.is_flat}


def main() -> int:
    """Soak, print the trends, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=positive, default=8, help="how long")
    parser.add_argument("--backend", choices=BACKEND_CHOICES, default="host", help="backend of the simulation")
    parser.add_argument("--seed", type=int, default=0, help="seed of what is done")
    parser.add_argument("--graphs", type=int, default=_GRAPHS, help="graphs and lists that executors keep")
    parser.add_argument("--json", type=Path, help="file for the result; - for standard output")
    options = parser.parse_args()
    backend, rounds, lines = soak(options.minutes, options.backend, options.seed, options.graphs)
    command = f"python -m benchmarks.soak --minutes {options.minutes} --backend {options.backend}"
    command += f" --graphs {options.graphs}" * (options.graphs != _GRAPHS)
    rows = [as_row(line) for line in lines]
    write_json({**result_header(command), "backend": backend, "rounds": rounds, "rows": rows}, options.json)
    if options.json != Path("-"):
        few = "" if rounds >= _FEWEST else f"; caches may still fill in fewer than {_FEWEST}"
        print(f"{rounds} rounds on {backend}{few}")
        for line in lines:
            verdict = "flat" if line.is_flat else "GROWS"
            print(
                f"{line.name}: {line.first:.1f} to {line.last:.1f}, {line.growth:+.2f} +- {line.error:.2f}: {verdict}"
            )
    return 0 if all(line.is_flat for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
