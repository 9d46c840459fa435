"""How XLA compiles the programs of a training."""

from __future__ import annotations

from typing import Any

import jax

_ON_GPU = {"xla_gpu_enable_triton_gemm": False, "xla_gpu_deterministic_ops": True}
"""Products of matrices are left to cuBLAS and to what it deems fastest.

XLA would otherwise compile kernels of its own for each product and choose by their times. That takes seconds, and the
next compilation may choose others, whose results have other bits.
"""


def compiled(lowered: Any, device: jax.Device) -> Any:
    """Compile a lowered program for a device, with XLA's own options where it does not know these."""
    if device.platform != "gpu":
        return lowered.compile()
    try:
        return lowered.compile(compiler_options=_ON_GPU)
    except jax.errors.JaxRuntimeError as error:
        if "No such compile option" not in str(error):
            raise
        return lowered.compile()
