"""Record the golden hashes of this machine: `python -m tests.golden.record`, on a GPU with `--backend cuda`.

It prints a JSON row for each case, and says which hashes changed. `--rows LOG` takes hashes from a log of such rows,
which another machine has printed. A commit that changes hashes says why.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.golden import environment, hashes
from tests.golden.cases import CASES
from tests.golden.play import play

Row = dict[str, str]


def played(backend: str, dtypes: Iterable[str], names: Iterable[str]) -> Iterator[Row]:
    """Rows of the cases, run here under executor `serial`."""
    for dtype in dtypes:
        key = environment.key(backend, dtype)
        for name in names:
            yield {"key": key, "case": name, "hash": play(CASES[name], backend, "serial", dtype).hash}


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
    parser.add_argument("--file", type=Path, default=hashes.FILE, help="where to write (default: the committed file)")
    args = parser.parse_args()
    table = hashes.read(args.file)
    changed = merge(table, logged(args.rows) if args.rows else played(args.backend, args.dtype, args.case))
    hashes.write(table, args.file)
    for line in changed:
        print(f"changed: {line}")
    print(f"{len(changed)} hashes changed; {args.file} holds those of {len(table)} environments")
    return 0


if __name__ == "__main__":
    sys.exit(main())
