"""The loaders of the engines, and whether they accept a model. Engines that are not installed are left out."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable

import mujoco

Loader = Callable[[mujoco.MjModel], object]


def simengine_loader() -> Loader:
    """simengine: the check of supported features."""
    import simengine

    return simengine.load_model


def mjx_loader() -> Loader:
    """MJX: `mjx.put_model`, which checks for features that its JAX implementation lacks."""
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
    """Installed version of a distribution.

    Raises:
        PackageNotFoundError: it is not installed.
    """
    return importlib.metadata.version(distribution)


def refusal(load: Loader, mjcf: str) -> str:
    """Why a loader refuses a model, in one line, or "" if it accepts the model. MuJoCo must be able to compile it."""
    mj = mujoco.MjModel.from_xml_string(mjcf)
    try:
        load(mj)
    except Exception as error:  # a loader of a peer may raise anything, which counts as its answer
        return " ".join(f"{type(error).__name__}: {error}".split())[:200]
    return ""
