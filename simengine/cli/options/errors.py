"""The command line's own error."""

from __future__ import annotations


class UsageError(Exception):
    """The command was called wrongly. The message is one sentence, which goes to stderr; the exit code is 2."""
