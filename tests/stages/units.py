"""One C++ source of many kernels. They share headers and bodies, so that 170 kernels compile in the time of ten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from simengine.kernels import sources
from simengine.kernels.host_codegen import host_entry
from simengine.kernels.kernel import Kernel
from simengine.kernels.prelude import constants, model_struct
from simengine.kernels.world_codegen import world_function
from simengine.physics.files import path_of

_KERNELS = Path(sources.__file__).parent

Edit = Callable[[str], str]


def unit_source(kernels: Sequence[Kernel], edit: Edit = str) -> str:
    """One C++ source of kernels, each with its entry point. `edit` may change the text of headers and stages.

    Kernels over islands, and kernels over slices, access the model through structs of their own. Hence either all or
    none of the kernels work on islands, and likewise on slices.
    """
    of_all = next((kernel for kernel in kernels if kernel.parameters), kernels[0])
    parts = [sources.dialect(), constants(), model_struct(of_all)]
    parts += [path_of(name).read_text() for name in sources.headers_after_model(*kernels)]
    parts.append((_KERNELS / "host_lanes.h").read_text())
    parts += sources.body_sources(*kernels)
    text = edit("\n".join(parts).replace("#pragma once\n", ""))
    bodies = [world_function(k) for k in kernels if k.unit != "column"]
    bodies += [host_entry(k) for k in kernels]
    return "\n".join([text, *bodies])


def one_lane_source(kernels: Sequence[Kernel]) -> str:
    """The same for one lane, whose functions of mathematics and vectors come first, as in a kernel of its own."""
    first = ((_KERNELS / name).read_text() for name in ("host_math.h", "vectors.h"))
    return "\n".join([*(text.replace("#pragma once\n", "") for text in first), unit_source(kernels)])
