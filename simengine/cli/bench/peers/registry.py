"""The engines of comparisons by name."""

from __future__ import annotations

from collections.abc import Sequence

from simengine.cli.bench.peers.engine import Engine
from simengine.cli.bench.peers.jax_peers import Brax, Mjx
from simengine.cli.bench.peers.mujoco_cpu import Batch, Mjbatch, Rollout
from simengine.cli.bench.peers.mujoco_warp import MujocoWarp
from simengine.cli.options.errors import UsageError
from simengine.errors import did_you_mean

PEERS: dict[str, type[Engine]] = {peer.name: peer for peer in (MujocoWarp, Mjx, Brax, Rollout, Batch, Mjbatch)}


def chosen_peers(names: Sequence[str] | None, device: str) -> tuple[list[type[Engine]], dict[str, str]]:
    """Return the peers of a comparison that are installed, and for the others why they are absent, by name.

    Args:
        names: names of peers; None for all that run on the device.
        device: "gpu" or "cpu".

    Raises:
        UsageError: there is no peer of a name.
    """
    for name in names or ():
        if name not in PEERS:
            raise UsageError(f"no peer {name!r}{did_you_mean(name, PEERS)}; choose from {', '.join(PEERS)}")
    wanted = (
        [PEERS[name] for name in names] if names is not None else [p for p in PEERS.values() if device in p.devices]
    )
    reasons = {peer.name: reason for peer in wanted if (reason := peer.absent())}
    return [peer for peer in wanted if peer.name not in reasons], reasons
