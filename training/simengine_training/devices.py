"""Several devices: worlds are divided among them, and everything else is the same on each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from simengine_training.errors import TrainingError

AXIS = "devices"


def mean_over(x: Any, axis: str | None) -> Any:
    """The mean over an axis of devices of each array of a tree; the tree itself if there is no such axis."""
    return x if axis is None else jax.lax.pmean(x, axis)


def sum_over(x: Any, axis: str | None) -> Any:
    """The sum over an axis of devices of each array of a tree; the tree itself if there is no such axis."""
    return x if axis is None else jax.lax.psum(x, axis)


def mesh_of(first: jax.Device, count: int) -> Mesh | None:
    """A mesh of devices of the kind of `first`, over all processes; None for one device.

    Raises:
        TrainingError: there are fewer, or some of several processes would have nothing to do.
    """
    there = jax.devices(first.platform)
    name = "GPUs" if first.platform == "gpu" else f"devices of kind {first.platform!r}"
    if count > len(there):
        raise TrainingError(f"devices is {count}, and JAX finds {len(there)} {name} here; lower devices")
    if jax.process_count() > 1 and count < len(there):
        raise TrainingError(
            f"devices is {count}, and the {jax.process_count()} processes have {len(there)} {name}; set devices to "
            f"{len(there)}, or start fewer processes"
        )
    if count == 1:
        return None
    return Mesh(there[:count], (AXIS,))


def worlds_over(mesh: Mesh) -> NamedSharding:
    """How an array (worlds, ...) lies on the devices: in equal parts, in order."""
    return NamedSharding(mesh, PartitionSpec(AXIS))


def same_on(mesh: Mesh) -> NamedSharding:
    """How an array lies on the devices that each has whole."""
    return NamedSharding(mesh, PartitionSpec())


def over_devices(function: Callable[..., Any], mesh: Mesh | None, inputs: Any, outputs: Any) -> Callable[..., Any]:
    """A function of trees, run by each device on its part of the worlds.

    Args:
        function: the function. It gets `AXIS` as the name of the axis of devices if there is a mesh.
        mesh: the devices; None for one, on which the function runs as it is.
        inputs: for each argument, whether it is divided by worlds (True), or the same on each device.
        outputs: the same for each result.
    """
    if mesh is None:
        return function
    specs = [tuple(PartitionSpec(AXIS) if split else PartitionSpec() for split in which) for which in (inputs, outputs)]

    def parallel(*arguments: Any) -> Any:
        made: list[Any] = []

        def run(*parts: Any) -> Any:
            results = function(*_with_empty(parts, arguments, inputs, 1 / mesh.size))
            made.append(jax.eval_shape(lambda: results))
            return _without_empty(results)

        # XLA of jaxlib 0.11.2 crashes on arrays without entries, such as activations of a model that has none
        split = jax.shard_map(run, mesh=mesh, in_specs=specs[0], out_specs=specs[1], check_vma=False)
        return _with_empty(split(*_without_empty(arguments)), made[0], outputs, mesh.size)

    return parallel


def _without_empty(tree: Any) -> Any:
    """A tree with None for each array that has no entries."""
    return jax.tree.map(lambda x: x if x.size else None, tree)


def _with_empty(parts: Any, like: Any, split: tuple[bool, ...], factor: float) -> Any:
    """Trees with the arrays that `_without_empty` left out.

    Args:
        parts: the trees.
        like: trees with the shapes and types of all arrays.
        split: for each tree, whether its arrays are divided by worlds.
        factor: factor of the number of worlds from `like` to the result.
    """

    def back(shape: Any, part: Any, by_worlds: bool) -> Any:
        if part is not None:
            return part
        first = round(shape.shape[0] * factor) if by_worlds else shape.shape[0]
        return jnp.zeros((first, *shape.shape[1:]), shape.dtype)

    return tuple(
        jax.tree.map(lambda shape, part, own=own: back(shape, part, own), *trees)
        for own, *trees in zip(split, like, parts, strict=True)
    )
