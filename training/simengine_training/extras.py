"""Imports the packages of the extra `train`, with one error message for all of them."""

from __future__ import annotations

from simengine_training.errors import MissingExtraError

try:
    import optax
    import orbax.checkpoint as ocp
    from flax import linen as nn
except ModuleNotFoundError as error:
    raise MissingExtraError(
        f"training needs the package {(error.name or '').partition('.')[0]!r}, which is not installed; "
        "install what it needs with: pip install 'simengine[train]'"
    ) from error

__all__ = ["nn", "ocp", "optax"]
