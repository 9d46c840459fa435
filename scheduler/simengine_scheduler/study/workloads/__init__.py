"""Workloads without physics: neural networks as lists of kernels, to test and measure executors.

workload = make_network("population", CudaPlace(), rows=64)
executor = make_executor("streams", segments=workload.segments, **workload.options)
trace = workload.run(executor, steps=10)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.errors import choose_one
from .base import Memory, Network, Workload
from .places import CudaPlace, HostPlace, Place
from .population import Population
from .wired import WiredNetwork

NETWORKS: dict[str, Callable[..., Network]] = {"population": Population, "wired": WiredNetwork}


def make_network(name: str, place: Place, **options: Any) -> Network:
    """Make a network by name.

    Args:
        name: a key of `NETWORKS`.
        place: the memory and processor of the network.
        options: arguments of its class.

    Raises:
        ValueError: the name is unknown.
        TypeError: an option is unknown.
    """
    if name not in NETWORKS:
        raise ValueError(f"unknown network {name!r}; {choose_one(name, sorted(NETWORKS))}")
    return NETWORKS[name](place, **options)


__all__ = [
    "NETWORKS",
    "CudaPlace",
    "HostPlace",
    "Memory",
    "Network",
    "Place",
    "Population",
    "WiredNetwork",
    "Workload",
    "make_network",
]
