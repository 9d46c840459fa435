"""Wrong calls of the command line."""

from __future__ import annotations

import pytest

from simengine.cli.main import main


def assert_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong call ends with exit code 2, prints nothing on standard output and says on the other what is wrong."""
    try:
        code: object = main(arguments)
    except SystemExit as left:  # argparse leaves by itself
        code = left.code
    streams = capsys.readouterr()
    assert code == 2
    assert message in streams.err
    assert streams.out == ""
