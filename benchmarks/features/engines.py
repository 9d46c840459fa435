"""What each engine's own loader says to a model; an engine that is not installed says nothing."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable

import mujoco

Loader = Callable[[mujoco.MjModel], object]


def simengine_loader() -> Loader:
    """This engine's support gate."""
    import simengine

    return simengine.load_model


def mjx_loader() -> Loader:
    """MJX: `mjx.put_model`, which checks what its JAX implementation has."""
    from mujoco import mjx

    return lambda mj: mjx.put_model(mj, impl="jax")


def mujoco_warp_loader() -> Loader:
    """MuJoCo Warp: `put_model`."""
    import mujoco_warp

    return mujoco_warp.put_model


def brax_loader() -> Loader:
    """Brax: `brax.io.mjcf.load_model`."""
    from brax.io import mjcf

    return mjcf.load_model


PEERS: dict[str, tuple[str, Callable[[], Loader]]] = {
    "MJX": ("mujoco-mjx", mjx_loader),
    "MuJoCo Warp": ("mujoco-warp", mujoco_warp_loader),
    "Brax": ("brax", brax_loader),
}
"""Distribution and loader of each peer."""


def version(distribution: str) -> str:
    """Installed version; raises PackageNotFoundError if there is none."""
    return importlib.metadata.version(distribution)


def refusal(load: Loader, mjcf: str) -> str:
    """Why a loader refuses a model, in one line, or "" if it takes it; MuJoCo itself must compile it."""
    mj = mujoco.MjModel.from_xml_string(mjcf)
    try:
        load(mj)
    except Exception as error:  # whatever a foreign loader raises is its answer
        return " ".join(f"{type(error).__name__}: {error}".split())[:200]
    return ""
