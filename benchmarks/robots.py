"""The robots on which engines are compared: `python -m benchmarks.robots list`, and `pack DIR`.

`list` prints each robot with the package that ships it, its source, and whether it can be built here. `pack` writes
robots of the installed packages into a folder of some megabytes, each as one MJCF file with the meshes that collide or
have mass. A machine without the packages reads the folder by `simengine bench peers --robots-dir DIR`, or by the
environment variable SIMENGINE_ROBOTS. A folder is not meant to be committed: its files belong to their authors.

The exit code is 1 if a robot could not be packed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from simengine.cli.bench.robots import ROBOTS, Robot, build, missing, pack, robot_names
from simengine.errors import ModelError, did_you_mean

LARGEST = 6 * 2**20
"""Size of a packed robot above which it is left out unless it is named [bytes]."""


def chosen(names: Sequence[str]) -> list[Robot]:
    """Return robots by name, or all.

    Raises:
        ValueError: there is no robot of a name.
    """
    for name in names:
        if name not in robot_names():
            raise ValueError(
                f"no robot {name!r}{did_you_mean(name, robot_names())}; see python -m benchmarks.robots list"
            )
    return [robot for robot in ROBOTS if not names or robot.name in names]


def listing(robots: Sequence[Robot], folder: Path | None) -> Table:
    """A table of robots with their sizes, or with the reason why they cannot be built here."""
    table = Table("robot", "package", "nv", "nu", "geoms", "meshes", "tendons", "source")
    for robot in robots:
        if reason := missing(robot, folder):
            table.add_row(robot.name, robot.package, *[""] * 5, reason)
            continue
        mj = build(robot, folder)
        sizes = (mj.nv, mj.nu, mj.ngeom, mj.nmesh, mj.ntendon)
        table.add_row(robot.name, robot.package, *map(str, sizes), robot.source)
    return table


def packed(robots: Sequence[Robot], folder: Path, largest: float) -> list[str]:
    """Pack robots, and return what is said of each that was left out or failed."""
    said, total = [], 0
    for robot in track(robots, "robots", console=Console(stderr=True)):
        try:
            found = pack(robot, folder, largest)
        except ModelError as error:
            said.append(str(error))
            continue
        total += found.bytes
        print(f"{robot.name}: {found.bytes / 2**20:.2f} MiB, {found.meshes} meshes")
    print(f"{folder}: {total / 2**20:.1f} MiB")
    return said


def main(arguments: Sequence[str] | None = None) -> int:
    """List robots, or pack them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, help_text in (("list", "print the robots"), ("pack", "write robots into a folder")):
        command = commands.add_parser(name, help=help_text)
        if name == "pack":
            command.add_argument("folder", type=Path)
        else:
            command.add_argument("--robots-dir", type=Path, help="folder of packed robots")
        command.add_argument("--robot", nargs="+", default=[], help="robots; all, if none is named")
    options = parser.parse_args(arguments)
    try:
        robots = chosen(options.robot)
    except ValueError as error:
        parser.error(str(error))
    if options.command == "list":
        Console().print(listing(robots, options.robots_dir))
        return 0
    said = packed(robots, options.folder, float("inf") if options.robot else LARGEST)
    for sentence in said:
        print(sentence, file=sys.stderr)
    return 1 if said else 0


if __name__ == "__main__":
    raise SystemExit(main())
