"""Variants of kernels: the same stages, built otherwise for the models that need it."""

from __future__ import annotations

from dataclasses import replace

from simengine.kernels.codegen import stage_sources
from simengine.kernels.kernel import Kernel
from simengine.model.model_table import ModelTable
from simengine.model.pairs import FACE_CORNERS
from simengine.plan import catalogue
from simengine.plan.pairs import PAIR_KERNELS


def with_contact_parameters(kernel: Kernel) -> Kernel:
    """The kernel's variant that reads the parameters of contacts beside them, where one of its stages reads any."""
    if (
        kernel.on_islands
        or kernel.own_contact_parameters
        or not any(stage.contact_parameters for stage in kernel.stages)
    ):
        return kernel
    return replace(kernel, name=f"{kernel.name}_contact_parameters", own_contact_parameters=True)


def with_face_capacity(kernel: Kernel, corners: int) -> Kernel:
    """The kernel's variant with room for faces of so many corners, where it finds what lies flat on what.

    Corners of a polygon are kept for each thread, for which the GPU sets memory aside: most models do with little.
    """
    clips = any(path.stem == "convex" for path in stage_sources(kernel))
    if corners == FACE_CORNERS[0] or not clips:
        return kernel
    return replace(kernel, name=f"{kernel.name}_{corners}", constants=(("FACE_CORNERS", corners),))


def variant_for(model: ModelTable, kernel: Kernel) -> Kernel:
    """The kernel, or its variant where the model needs one; all that a step launches has been through here."""
    chosen = with_contact_parameters(kernel) if model.finds_pairs else kernel
    return with_face_capacity(chosen, model.face_corners)


def with_largest_faces() -> tuple[Kernel, ...]:
    """Every variant with room for the largest faces."""
    general = catalogue.POSITION_GENERAL
    kernels = (general, *map(catalogue.single, general.stages), *catalogue.NARROW.values(), *PAIR_KERNELS)
    return tuple(variant for k in kernels if (variant := with_face_capacity(k, FACE_CORNERS[-1])) != k)
