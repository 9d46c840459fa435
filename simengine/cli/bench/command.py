"""`simengine bench`: the benchmarks by name. Each has options of its own."""

from __future__ import annotations

from typing import Any

from simengine.cli.bench import scheduler, stepping
from simengine.cli.bench.peers import command as peers


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "bench", help="measure steps a second, also beside other engines, or the executors of kernel lists"
    )
    benchmarks = parser.add_subparsers(required=True, metavar="BENCHMARK")
    for benchmark in (stepping, peers, scheduler):
        benchmark.add_parser(benchmarks)
