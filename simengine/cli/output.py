"""The console on which the command line prints tables."""

from __future__ import annotations

import sys

from rich.console import Console

_WIDTH = 140  # columns of a table in a file or a pipe, which have no width of their own


def console(width: int = _WIDTH) -> Console:
    """Return a console on standard output. It prints square brackets as they are, as in simengine[cuda13].

    Args:
        width: number of columns if the output is not a terminal.
    """
    return Console(width=None if sys.stdout.isatty() else width, markup=False, highlight=False)
