"""Operations of JAX that put numbers to other places: on lanes they only say which lane is where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from simengine_envs.lanes.graph import Graph
from simengine_envs.lanes.values import MOST_CONSTANTS, Lanes, NotInLanes, expanded, numbers


def _split_axis(value: Lanes, sizes: Any) -> tuple[int, ...]:
    """The shape of an entry of a result of a shape. Raises NotInLanes unless its first axis is that of the worlds."""
    shape = tuple(int(size) for size in sizes)
    if value.worlds is None:
        return shape
    if not shape or shape[0] != value.worlds:
        raise NotInLanes
    return shape[1:]


def _axes(value: Lanes, axes: Any) -> list[int]:
    """Axes of an array as axes of its entries. Raises NotInLanes if the worlds' is among them."""
    if value.worlds is None:
        return [int(axis) for axis in axes]
    if 0 in axes:
        raise NotInLanes
    return [int(axis) - 1 for axis in axes]


def _broadcast(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    if len(operands) != 1 or operands[0].keys is not None:
        raise NotInLanes
    value, shape, axes = operands[0], tuple(params["shape"]), tuple(params["broadcast_dimensions"])
    if value.worlds is not None and (not axes or axes[0] != 0 or shape[0] != value.worlds):
        value = expanded(graph, value)
    if value.worlds is None and np.prod(shape) > MOST_CONSTANTS:
        if 0 in axes and value.nodes.shape[axes.index(0)] != 1:
            raise NotInLanes
        nodes = _placed(value.nodes, axes, shape)[0]
        return [value._replace(nodes=nodes, worlds=shape[0])]
    if value.worlds is None:
        return [value._replace(nodes=np.broadcast_to(_placed(value.nodes, axes, shape), shape))]
    if not axes or axes[0] != 0:
        raise NotInLanes
    entry = _split_axis(value, shape)
    return [value._replace(nodes=np.broadcast_to(_placed(value.nodes, [axis - 1 for axis in axes[1:]], entry), entry))]


def _placed(nodes: np.ndarray, axes: Any, shape: Any) -> np.ndarray:
    """An array with its axes at some of those of a shape, and 1 for the others."""
    sizes = [1] * len(shape)
    for axis, size in zip(axes, nodes.shape, strict=True):
        sizes[axis] = size
    placed = nodes.reshape(sizes)
    return np.broadcast_to(placed, (1, *shape[1:])) if len(shape) and sizes[0] == 1 else placed


def _reshape(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    (value,) = operands
    if params.get("dimensions") is not None or value.keys is not None:
        raise NotInLanes
    return [value._replace(nodes=value.nodes.reshape(_split_axis(value, params["new_sizes"])))]


def _squeeze(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    (value,) = operands
    return [value._replace(nodes=value.nodes.squeeze(tuple(_axes(value, params["dimensions"]))))]


def _transpose(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    (value,) = operands
    order = tuple(params["permutation"])
    if value.keys is not None or (value.worlds is not None and order[0] != 0):
        raise NotInLanes
    return [value._replace(nodes=np.transpose(value.nodes, order if value.worlds is None else _axes(value, order[1:])))]


def _slice(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    (value,) = operands
    strides = params["strides"] or (1,) * len(params["start_indices"])
    parts = list(zip(params["start_indices"], params["limit_indices"], strides, strict=True))
    if value.worlds is not None and parts.pop(0) != (0, value.worlds, 1):
        raise NotInLanes
    return [value._replace(nodes=value.nodes[tuple(slice(*part) for part in parts)])]


def _rev(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    (value,) = operands
    return [value._replace(nodes=np.flip(value.nodes, tuple(_axes(value, params["dimensions"]))))]


def _together(values: list[Lanes], axis: int) -> tuple[list[np.ndarray], int, int | None]:
    """Entries of values that are joined along an axis, that axis of them, and the number of worlds."""
    counts = {value.worlds for value in values if value.worlds is not None}
    if any(value.keys is not None for value in values) or len(counts) > 1:
        raise NotInLanes
    if not counts:
        return [value.nodes for value in values], axis, None
    (count,) = counts
    if axis == 0:
        raise NotInLanes
    entries = []
    for value in values:
        if value.worlds is None and (len(value.nodes) != count or not (value.nodes == value.nodes[:1]).all()):
            raise NotInLanes
        entries.append(value.nodes[0] if value.worlds is None else value.nodes)
    return entries, axis - 1, count


def _concatenate(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    parts, axis, count = _together(operands, params["dimension"])
    return [Lanes(np.concatenate(parts, axis), operands[0].dtype, count)]


def _stack(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    parts, axis, count = _together(operands, params["axis"])
    return [Lanes(np.stack(parts, axis), operands[0].dtype, count)]


def _tile(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    (value,) = operands
    times = tuple(params["reps"])
    if len(times) != len(value.shape) or (value.worlds is not None and times[0] != 1):
        raise NotInLanes
    return [value._replace(nodes=np.tile(value.nodes, times if value.worlds is None else times[1:]))]


def _split(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    (value,) = operands
    (axis,) = _axes(value, [params["axis"]])
    parts = np.split(value.nodes, np.cumsum(params["sizes"])[:-1], axis)
    return [value._replace(nodes=part) for part in parts]


# ------------------------------------------------------------------------------------------------ places by index


def _gather(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    """Parts at constant places of all worlds: what JAX takes from an array of nodes with one world."""
    value, indices = operands
    known, own = params["dimension_numbers"], tuple(params["slice_sizes"])
    whole = value.worlds is not None and own[0] == value.worlds and 0 in known.offset_dims
    untouched = 0 not in (*known.start_index_map, *known.collapsed_slice_dims, *known.operand_batching_dims)
    if not (whole and untouched) or value.keys is not None or indices.worlds is not None:
        raise NotInLanes
    where = numbers(graph, indices)
    made = {**params, "slice_sizes": (1, *own[1:]), "fill_value": None}
    # a place beyond the array would not be one of its nodes
    inside = params["mode"] in (jax.lax.GatherScatterMode.PROMISE_IN_BOUNDS, jax.lax.GatherScatterMode.CLIP)
    if not inside:
        made["fill_value"] = -1
    found = _on_nodes(jax.lax.gather_p, made, value.nodes[None], where)
    if (found < 0).any():
        raise NotInLanes
    return [value._replace(nodes=found[0])]


def _scatter(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    """Parts at constant places of all worlds are replaced."""
    value, indices, updates = operands
    chosen, count = _replaced(graph, params, value, indices, updates)
    entries, _, _ = _together([value, updates], 1) if value.worlds is not None else ([], 0, None)
    old, new = entries
    flat = new.ravel()
    return [Lanes(np.where(chosen < 0, old, flat[np.maximum(chosen, 0)]), value.dtype, count)]


def _scatter_add(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    """Numbers are added to those at constant places of all worlds, to each one at most."""
    value, indices, updates = operands
    kind = {"float32": "F32", "float64": "F64", "int32": "I32", "uint32": "I32"}.get(value.dtype)
    chosen, count = _replaced(graph, params, value, indices, updates)
    if kind is None or (chosen >= 0).sum() != updates.nodes.size // (1 if updates.worlds else count):
        raise NotInLanes("scatter-add with several numbers at a place")
    (old, new), _, _ = _together([value, updates], 1)
    made = old.copy()
    for place in np.argwhere(chosen >= 0):
        at = tuple(place)
        made[at] = graph.operation(f"ADD_{kind}", int(old[at]), int(new.ravel()[chosen[at]]))
    return [Lanes(made, value.dtype, count)]


def _replaced(graph: Graph, params: Any, value: Lanes, indices: Lanes, updates: Lanes) -> tuple[np.ndarray, int]:
    """For each number of an entry the number of its update, or -1."""
    known = params["dimension_numbers"]
    if value.worlds is None or indices.worlds is not None or value.keys is not None or len(updates.shape) < 1:
        raise NotInLanes
    touched = (*known.inserted_window_dims, *known.scatter_dims_to_operand_dims, *known.operand_batching_dims)
    if 0 in touched or not known.update_window_dims or known.update_window_dims[0] != 0:
        raise NotInLanes
    if updates.shape[0] != value.worlds:
        raise NotInLanes
    entry = updates.nodes.shape if updates.worlds is not None else updates.nodes.shape[1:]
    order = np.arange(int(np.prod(entry))).reshape(1, *entry)
    made = {**params, "update_jaxpr": None, "update_consts": ()}
    before = np.full((1, *value.nodes.shape), -1)
    return _on_nodes(jax.lax.scatter_p, made, before, numbers(graph, indices), order)[0], value.worlds


def _on_nodes(primitive: Any, params: Any, nodes: np.ndarray, *others: np.ndarray) -> np.ndarray:
    """What an operation of JAX does to numbers of nodes."""
    with jax.ensure_compile_time_eval(), jax.enable_x64(False):
        given = [jax.numpy.asarray(array.astype(np.int32)) for array in (nodes, *others)]
        return np.asarray(primitive.bind(*given, **params)).astype(np.int64)


SHAPE_RULES: dict[str, Callable[..., list[Lanes]]] = {
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "squeeze": _squeeze,
    "transpose": _transpose,
    "slice": _slice,
    "rev": _rev,
    "concatenate": _concatenate,
    "stack": _stack,
    "tile": _tile,
    "split": _split,
    "gather": _gather,
    "scatter": _scatter,
    "scatter-add": _scatter_add,
}
