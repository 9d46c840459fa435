"""Imports the package of the extra `train`."""

from __future__ import annotations

from simengine_training.errors import MissingExtraError

try:
    import optax
except ModuleNotFoundError as error:
    raise MissingExtraError(
        f"training needs the package {(error.name or '').partition('.')[0]!r}, which is not installed; "
        "install what it needs with: pip install 'simengine[train]'"
    ) from error

__all__ = ["optax"]
