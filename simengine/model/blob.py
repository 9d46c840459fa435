"""Packing: the model tables of a simulation as headers, one integer and one real blob, for the kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simengine.model.model import Model
from simengine.model.table import INT_OPTIONS, SIZES, TABLE


def pack_models(models: Sequence[Model], dtype: str) -> tuple[list[bytes], np.ndarray, np.ndarray]:
    """Headers of models, and their integer and real arrays as one blob each.

    Args:
        models: the models, in the order of their numbers.
        dtype: "float32" or "float64" for the real blob.

    Returns:
        a header per model (int32 as bytes), ints (int32) and reals; a header holds the sizes, nvp, the integer options,
        then the offset of each table field in its blob, in the order of `TABLE`.
    """
    headers: list[bytes] = []
    ints: list[np.ndarray] = []
    reals: list[np.ndarray] = []
    at = {"int": 0, "real": 0}
    for model in models:
        header = [model.sizes[name] for name in SIZES]
        header.append((model.sizes["nv"] + 3) & ~3)
        header += [model.options[name] for name in INT_OPTIONS]
        for field in TABLE:
            values = model.arrays[field.name].ravel()
            header.append(at[field.kind])
            (ints if field.kind == "int" else reals).append(values)
            at[field.kind] += values.size
        headers.append(np.array(header, dtype=np.int32).tobytes())
    int_blob = np.concatenate([*ints, np.zeros(1)]).astype(np.int32)
    real_blob = np.concatenate([*reals, np.zeros(1)]).astype(dtype)
    return headers, int_blob, real_blob
