"""Imports the package of the extra `view`, with one error message for all modules that use it."""

from __future__ import annotations

from simengine.errors import SimengineError


class MissingExtraError(SimengineError, ImportError):
    """The packages of the extra `view` are not installed."""


try:
    import viser
except ModuleNotFoundError as error:
    raise MissingExtraError(
        f"the page needs the package {(error.name or '').partition('.')[0]!r}, which is not installed; "
        "install what it needs with: pip install 'simengine[view]'"
    ) from error

__all__ = ["MissingExtraError", "viser"]
