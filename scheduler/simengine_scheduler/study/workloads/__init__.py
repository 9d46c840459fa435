"""Workloads without physics: neural networks as lists of kernels, to test and measure executors.

workload = make_network("population", CudaTarget(), rows=64)
executor = make_executor("streams", segments=workload.segments, **workload.options)
trace = workload.run(executor, steps=10)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.errors import choose_one
from .base import Memory, Network, Workload
from .clients import Clients
from .learning import Learning
from .population import Population
from .products import Products
from .skipping import SkippingNetwork
from .targets import CudaTarget, HostTarget, Target
from .wired import WiredNetwork

NETWORKS: dict[str, Callable[..., Network]] = {
    "clients": Clients,
    "learning": Learning,
    "population": Population,
    "products": Products,
    "skipping": SkippingNetwork,
    "wired": WiredNetwork,
}


def make_network(name: str, target: Target, **options: Any) -> Network:
    """Make a network by name.

    Args:
        name: a key of `NETWORKS`.
        target: the memory and processor of the network.
        options: arguments of its class.

    Raises:
        ValueError: the name is unknown.
        TypeError: an option is unknown.
    """
    if name not in NETWORKS:
        raise ValueError(f"unknown network {name!r}; {choose_one(name, sorted(NETWORKS))}")
    return NETWORKS[name](target, **options)


__all__ = [
    "NETWORKS",
    "Clients",
    "CudaTarget",
    "HostTarget",
    "Learning",
    "Memory",
    "Network",
    "Population",
    "Products",
    "SkippingNetwork",
    "Target",
    "WiredNetwork",
    "Workload",
    "make_network",
]
