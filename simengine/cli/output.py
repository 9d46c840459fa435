"""Where the command line prints."""

from __future__ import annotations

import sys

from rich.console import Console

_WIDTH = 140  # of tables that go to a file or a pipe, which has no width of its own


def console(width: int = _WIDTH) -> Console:
    """Standard output, for tables. Square brackets are text: messages name extras such as simengine[cuda13].

    Args:
        width: where a terminal does not say how wide it is.
    """
    return Console(width=None if sys.stdout.isatty() else width, markup=False, highlight=False)
