"""Record the golden hashes of this machine: `python -m tests.golden.record`, on a GPU with `--backend cuda`.

MuJoCo compiles models to other numbers on other processors. `--save-models FOLDER` writes the compiled models, and
`--models FOLDER` takes those of another machine, so that hashes tell what the engine itself does. The key of such rows
says "models of x86_64" or what that machine was.

It prints a JSON row for each case, and says which hashes changed. `--rows LOG` takes hashes from a log of such rows,
which another machine has printed. A commit that changes hashes says why.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import mujoco

from tests.golden import environment, hashes
from tests.golden.cases import CASES, Case
from tests.golden.play import play

Row = dict[str, str]
_MACHINE = "machine.txt"  # holds the processor on which the models of a folder were compiled


def played(backend: str, dtypes: Iterable[str], names: Iterable[str], models: Path | None = None) -> Iterator[Row]:
    """Rows of the cases, run here under executor `serial`; with the compiled models of a folder if one is given."""
    for dtype in dtypes:
        key = environment.key(backend, dtype)
        if models is not None:
            key = key.removesuffix(dtype) + f"models of {(models / _MACHINE).read_text()}, {dtype}"
        for name in names:
            case = CASES[name] if models is None else _compiled(name, models)
            yield {"key": key, "case": name, "hash": play(case, backend, "serial", dtype).hash}


def save_models(folder: Path) -> None:
    """Write the compiled models of all cases into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MACHINE).write_text(platform.machine())
    for name, case in CASES.items():
        for number, source in enumerate(case.sources):
            mujoco.mj_saveModel(source(), str(_file(folder, name, number)))


def _compiled(name: str, folder: Path) -> Case:
    """A case with the compiled models of a folder."""
    files = (str(_file(folder, name, number)) for number in range(len(CASES[name].sources)))
    sources = tuple(partial(mujoco.MjModel.from_binary_path, file) for file in files)
    return replace(CASES[name], sources=sources)


def _file(folder: Path, name: str, number: int) -> Path:
    return folder / f"{name.replace(', ', '-').replace(' ', '_')}-{number}.mjb"


def logged(path: Path) -> Iterator[Row]:
    """Rows in the log of another recorder. Other lines of the log are ignored."""
    for line in path.read_text().splitlines():
        if line.startswith('{"key": '):
            yield json.loads(line)


def merge(table: hashes.Table, rows: Iterable[Row]) -> list[str]:
    """Put rows into a table, print them, and return which hashes changed.

    In each environment of the rows, cases that no longer exist are removed and the others take the order of `CASES`.
    """
    changed, keys = [], set()
    for row in rows:
        print(json.dumps(row), flush=True)
        known = table.setdefault(row["key"], {})
        before = known.get(row["case"])
        if before not in (None, row["hash"]):
            changed.append(f"{row['key']}: {row['case']}: {before} -> {row['hash']}")
        known[row["case"]] = row["hash"]
        keys.add(row["key"])
    for key in keys:
        table[key] = {name: table[key][name] for name in CASES if name in table[key]}
    return changed


def main() -> int:
    """Record hashes and print which changed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=["host", "cuda"], default="host")
    parser.add_argument("--dtype", nargs="+", choices=["float32", "float64"], default=["float32", "float64"])
    parser.add_argument("--case", nargs="+", choices=list(CASES), default=list(CASES), metavar="NAME")
    parser.add_argument("--rows", type=Path, help="a log of rows to take in place of running the cases")
    parser.add_argument("--save-models", type=Path, metavar="FOLDER", help="write the compiled models, and no hashes")
    parser.add_argument("--models", type=Path, metavar="FOLDER", help="use these compiled models")
    parser.add_argument("--file", type=Path, default=hashes.FILE, help="where to write (default: the committed file)")
    args = parser.parse_args()
    if args.save_models:
        save_models(args.save_models)
        return 0
    table = hashes.read(args.file)
    rows = logged(args.rows) if args.rows else played(args.backend, args.dtype, args.case, args.models)
    changed = merge(table, rows)
    hashes.write(table, args.file)
    for line in changed:
        print(f"changed: {line}")
    print(f"{len(changed)} hashes changed; {args.file} holds those of {len(table)} environments")
    return 0


if __name__ == "__main__":
    sys.exit(main())
