"""The model tables of a simulation, packed for the kernels: a header per model, one integer array and one real array.

A header is passed to kernels by value, so that sizes, options and scalar physics are constants of the launch, and a
table field takes one load. It contains the integers of `HEADER` (padded to eight bytes) and the real fields of
`HEADER_FIELDS`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simengine.model.model_table import ModelTable
from simengine.model.table import INT_OPTIONS, SIZES, TABLE, TableField


def field_size(field: TableField) -> int:
    """Numbers in a field whose dims are all integers."""
    return int(np.prod([d for d in field.dims if isinstance(d, int)], dtype=np.int64))


# Real fields of fixed size are stored in the header, except those that may differ between worlds.
PER_WORLD_OPTIONS = ("opt_gravity", "opt_density", "opt_viscosity", "opt_wind", "stat_meaninertia")
HEADER_FIELDS: tuple[TableField, ...] = tuple(
    f for f in TABLE if f.kind == "real" and all(isinstance(d, int) for d in f.dims) and f.name not in PER_WORLD_OPTIONS
)
HEADER_REALS = sum(field_size(f) for f in HEADER_FIELDS)
HEADER_SCALARS: tuple[str, ...] = (*SIZES, "nvp", *INT_OPTIONS, "real_stride")
BLOB_FIELDS: tuple[TableField, ...] = tuple(f for f in TABLE if f not in HEADER_FIELDS)
_WHOLE_LINES = {"cube_pack": 4}  # fields of which a GPU loads so many integers at once, from a multiple of their size
# The integers of a header: sizes, nvp, options, the stride from one world's real numbers to those of the next (0 if all
# worlds share them), then the first entry of each field in the arrays.
HEADER: tuple[str, ...] = (*HEADER_SCALARS, *(f.name for f in BLOB_FIELDS))


def header_bytes(dtype: str) -> int:
    """Size of a header in bytes."""
    return (4 * len(HEADER) + 7) // 8 * 8 + (np.dtype(dtype).itemsize * HEADER_REALS + 7) // 8 * 8


def pack_models(models: Sequence[ModelTable], dtype: str) -> tuple[list[bytes], np.ndarray, np.ndarray]:
    """Headers of models, and the concatenations of their integer arrays and of their real arrays.

    Args:
        models: the models, in the order of their numbers.
        dtype: "float32" or "float64" for real numbers.

    Returns:
        a header per model, integers (int32) and real numbers.
    """
    headers: list[bytes] = []
    parts: dict[str, list[np.ndarray]] = {"int": [], "real": []}
    at = {"int": 0, "real": 0}
    for model in models:
        integers = [model.sizes[name] for name in SIZES]
        integers.append((model.sizes["nv"] + 3) & ~3)
        integers += [model.options[name] for name in INT_OPTIONS]
        integers.append(0)
        for field in BLOB_FIELDS:
            values = model.arrays[field.name].ravel()
            if unused := -at[field.kind] % _WHOLE_LINES.get(field.name, 1):
                parts[field.kind].append(np.zeros(unused))
                at[field.kind] += unused
            integers.append(at[field.kind])
            parts[field.kind].append(values)
            at[field.kind] += values.size
        reals = _rounded([model.arrays[f.name].ravel() for f in HEADER_FIELDS], dtype)
        head = np.array(integers, dtype=np.int32).tobytes()
        head = head.ljust((len(head) + 7) // 8 * 8, b"\0") + reals.tobytes()
        headers.append(head.ljust(header_bytes(dtype), b"\0"))
    int_blob = np.concatenate([*parts["int"], np.zeros(1)]).astype(np.int32)
    real_blob = _rounded([*parts["real"], np.zeros(1)], dtype)
    return headers, int_blob, real_blob


def packed_bytes(model: ModelTable, dtype: str) -> int:
    """Bytes of the arrays of one model that `pack_models` returns."""
    numbers = {"int": 0, "real": 0}
    for field in BLOB_FIELDS:
        unused = -numbers[field.kind] % _WHOLE_LINES.get(field.name, 1)
        numbers[field.kind] += unused + model.arrays[field.name].size
    return 4 * (numbers["int"] + 1) + np.dtype(dtype).itemsize * (numbers["real"] + 1)


def _rounded(parts: Sequence[np.ndarray], dtype: str) -> np.ndarray:
    """Real numbers in a precision. Ranges that it does not hold become infinite, which means that there are none."""
    with np.errstate(over="ignore"):
        return np.concatenate(parts).astype(dtype)


def with_integers(header: bytes, **values: int) -> bytes:
    """A copy of a header with other values for some of its integers."""
    integers = np.frombuffer(header, dtype=np.int32, count=len(HEADER)).copy()
    for name, value in values.items():
        integers[HEADER.index(name)] = value
    return integers.tobytes() + header[integers.nbytes :]


def field_offsets(model: ModelTable) -> dict[str, tuple[int, int]]:
    """First entry and number of entries of each real field in the real numbers of one model."""
    places, at = {}, 0
    for field in BLOB_FIELDS:
        if field.kind == "real":
            places[field.name] = (at, model.arrays[field.name].size)
            at += model.arrays[field.name].size
    return places
