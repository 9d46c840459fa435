"""Where `simengine train` runs: in this process, or in processes of a Ray cluster."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_ADDRESS = re.compile(r"(ray://)?[^/]+:\d+")


def add_ray_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that chooses a cluster."""
    parser.add_argument(
        "--ray", nargs="?", const=True, type=_address, metavar="HOST:PORT",
        help="train in processes of the Ray cluster at this address, one for each device; without an address the "
        "cluster of this host, which is started if there is none; all hosts must share the folder for results",
    )  # fmt: skip


@contextmanager
def trainer_of(options: argparse.Namespace) -> Iterator[Any]:
    """What has the functions `train` and `resume`: the module of trainings, or a cluster.

    Raises:
        MissingExtraError: the package of the extra `ray` is not installed.
        TrainingError: no cluster answers.
    """
    if options.ray is None:
        from simengine_training import run

        yield run
        return
    from simengine_training.ray_cluster import Cluster

    with Cluster(None if options.ray is True else options.ray, options.imports) as cluster:
        yield cluster


def _address(text: str) -> str:
    """Check an address. Raises ArgumentTypeError if a preset, or anything else, stands in its place."""
    if not _ADDRESS.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT; without an address, let --ray come last")
    return text
