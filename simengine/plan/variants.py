"""Variants of kernels: the same stages, built otherwise for the models that need it."""

from __future__ import annotations

from dataclasses import replace

from simengine.kernels.kernel import Kernel
from simengine.model.model import Model


def taking_parameters(kernel: Kernel) -> Kernel:
    """The kernel's variant that reads the parameters of contacts beside them, where one of its stages reads any."""
    if kernel.on_islands or kernel.mixes or not any(stage.contact_parameters for stage in kernel.stages):
        return kernel
    return replace(kernel, name=f"{kernel.name}_mixing", mixes=True)


def variant_for(model: Model, kernel: Kernel) -> Kernel:
    """The kernel, or its variant where the model needs one; all that a step launches has been through here."""
    return taking_parameters(kernel) if model.finds_pairs else kernel
