"""The command line's own error."""

from __future__ import annotations


class UsageError(Exception):
    """The command was called wrongly; one sentence, shown on stderr, exit code 2."""
