"""Inject faults and count what becomes of them.

    python -m benchmarks.faults --json benchmarks/results/faults_host.json
    python -m benchmarks.faults --backend cuda --json benchmarks/results/faults_cuda.json

With `--backend cuda` the faults are those of a GPU, and of commands that run on it.

The exit code is 0 if every fault was found, recovered from or harmless, 1 if something wrong went on, 2 for a wrong
call.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.faults import gpu
from benchmarks.faults.files import flipped, kinds, torn, with_code
from benchmarks.faults.outcome import Outcomes
from benchmarks.faults.processes import (
    failing_compilers,
    full_disk,
    killed_building,
    killed_saving,
    killed_training,
    run_on,
)
from simengine.cli.options.settings import positive
from simengine.cli.results.machine import result_header
from simengine.cli.results.output import progress_bar
from simengine.cli.results.result_file import write_json

_SHOWN = 5  # sentences about what went wrong, for each fault


def main() -> int:
    """Inject the faults, print what became of them, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("host", "cuda"), default="host", help="where commands run")
    parser.add_argument("--files", type=positive, default=200, help="trials for each kind of damaged file")
    parser.add_argument("--kills", type=positive, default=4, help="trials for each kind of killed process")
    parser.add_argument("--seed", type=int, default=0, help="seed of the places and moments")
    parser.add_argument("--only", choices=("files", "processes"), help="leave the other faults out")
    parser.add_argument("--json", type=Path, help="file for the result; - for standard output")
    options = parser.parse_args()
    command = f"python -m benchmarks.faults --files {options.files} --kills {options.kills} --seed {options.seed}"
    command += f" --backend {options.backend}" * (options.backend != "host")
    rows = []
    with tempfile.TemporaryDirectory(prefix="simengine-faults-") as folder:
        on_gpu = options.backend == "cuda"
        steps = list((_steps_on_gpu if on_gpu else _steps)(Path(folder), options))
        # those of a GPU are processes, which mostly wait for one another's kernels to be built
        with progress_bar("faults", len(steps)) as advance, ThreadPoolExecutor(len(steps) if on_gpu else 1) as pool:
            for outcomes in pool.map(lambda step: step(), steps):
                rows.append(outcomes.as_row())
                advance(1)
                if options.json != Path("-"):
                    _print(rows[-1])
    write_json({**result_header(command), "backend": options.backend, "rows": rows}, options.json)
    return 1 if any(row["wrong"] for row in rows) else 0


def _print(row: dict[str, Any]) -> None:
    counts = ", ".join(f"{row[name]} {name}" for name in ("found", "recovered", "harmless"))
    print(f"{row['fault']}, {row['to']}: {counts}, {len(row['wrong'])} wrong", flush=True)
    for sentence in row["wrong"][:_SHOWN]:
        print(f"  {sentence}")


def _steps(folder: Path, options: argparse.Namespace) -> Iterator[Callable[[], Outcomes]]:
    if options.only != "processes":
        for kind in kinds(folder):
            yield partial(flipped, kind, options.files, options.seed)
            yield partial(torn, kind, options.files, options.seed)
            if kind.path.suffix == ".npz":
                yield partial(with_code, kind, folder)
    if options.only != "files":
        yield partial(failing_compilers, folder)
        yield partial(full_disk, folder)
        yield partial(killed_building, folder, options.kills, options.seed)
        yield partial(killed_saving, folder, options.kills, options.seed)
        yield partial(killed_training, folder, options.kills, options.seed)


def _steps_on_gpu(folder: Path, options: argparse.Namespace) -> Iterator[Callable[[], Outcomes]]:
    yield gpu.writing_beyond
    yield gpu.ending_memory
    for fault in gpu.DAMAGES:
        yield partial(gpu.damaged_kernels, fault, folder, run_on("cuda"), options.kills, options.seed)
    yield partial(killed_building, folder, options.kills, options.seed, "cuda")
    yield partial(killed_saving, folder, options.kills, options.seed, "cuda")


if __name__ == "__main__":
    sys.exit(main())
