"""The error of a training library that is not installed."""

from __future__ import annotations


def missing(library: str, extra: str, error: ImportError) -> ImportError:
    """An error that says which library an adapter needs, why it cannot be imported, and which extra brings it."""
    return ImportError(
        f"this adapter needs {library}, which cannot be imported ({error}); install it with: "
        f"pip install 'simengine[{extra}]'"
    )
