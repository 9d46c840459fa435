"""Packing: the model tables of a simulation as one integer and one real blob, for the kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simengine.model.model import Model
from simengine.model.table import INT_OPTIONS, SIZES, TABLE


def pack_models(models: Sequence[Model], dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Blobs of models: integer headers first, one per model, then the integer arrays; the real arrays apart.

    Args:
        models: the models, in the order of their numbers.
        dtype: "float32" or "float64" for the real blob.

    Returns:
        ints (int32) and reals; a header holds the sizes, nvp, the integer options, then the offset of each table field
        in its blob, in the order of `TABLE`.
    """
    header_size = len(SIZES) + 1 + len(INT_OPTIONS) + len(TABLE)
    headers: list[list[int]] = []
    ints: list[np.ndarray] = []
    reals: list[np.ndarray] = []
    at = {"int": header_size * len(models), "real": 0}
    for model in models:
        header = [model.sizes[name] for name in SIZES]
        header.append((model.sizes["nv"] + 3) & ~3)
        header += [model.options[name] for name in INT_OPTIONS]
        for field in TABLE:
            values = model.arrays[field.name].ravel()
            header.append(at[field.kind])
            (ints if field.kind == "int" else reals).append(values)
            at[field.kind] += values.size
        headers.append(header)
    int_blob = np.concatenate([np.array(headers).ravel(), *ints]).astype(np.int32)
    real_blob = np.concatenate([*reals, np.zeros(1)]).astype(dtype)
    return int_blob, real_blob
