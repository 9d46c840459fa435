"""Entry point of the command line. It parses arguments, runs the command, and turns errors into exit codes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from simengine.cli import check, fuzz, info, run, trace, view, warmup
from simengine.cli.bench import command as bench
from simengine.cli.options.errors import UsageError
from simengine.cli.policies import evaluate, export, play
from simengine.cli.recordings import replay
from simengine.cli.results.output import compile_notice
from simengine.cli.train import command as train
from simengine.errors import NonFiniteError, SimengineError, UnknownModelError, did_you_mean
from simengine_scheduler import CallError

FAILURES = (SimengineError, CallError, OSError, RuntimeError, ValueError, FloatingPointError, MemoryError)
_UNSTABLE = "its controls may be too strong, as random ones often are, or its time step too long; try a smaller one"


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands.

    A parsed namespace has the attribute `command`, a function that takes the namespace and returns the exit code.
    """
    parser = argparse.ArgumentParser(
        prog="simengine", description="A batched rigid-body physics engine for reinforcement learning."
    )
    parser.add_argument("--traceback", action="store_true", help="show where a failure came from")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (run, replay, view, check, fuzz, bench, train, evaluate, play, export, trace, info, warmup):
        command.add_parser(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        0 for success, 1 for a failure, 2 for a wrong call, 130 when interrupted.
    """
    options = _parsed(build_parser(), arguments)
    try:
        with compile_notice():
            return options.command(options)
    except (UsageError, UnknownModelError) as error:
        return _fail(error, 2)
    except KeyboardInterrupt:
        return 130
    except FAILURES as error:
        if options.traceback:
            raise
        return _fail(f"{error.found}; {_UNSTABLE}" if isinstance(error, NonFiniteError) else error, 1)


def _parsed(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse arguments. Settings, NAME=VALUE, may stand between options, which argparse alone does not allow."""
    options, further = parser.parse_known_args(arguments)
    settings = getattr(options, "settings", None)
    unknown = next((text for text in further if text.startswith("--")), None)
    if unknown is not None and (hint := _option_like(unknown, options)):
        parser.error(f"unrecognized arguments: {' '.join(further)}{hint}")
    if settings is None or any(text.startswith("-") or "=" not in text for text in further):
        return parser.parse_args(arguments)
    settings += further
    return options


def _option_like(text: str, options: argparse.Namespace) -> str:
    """The option of the command that is most like an unknown one, as a hint; "" if none is."""
    known = ["--" + name.replace("_", "-") for name in vars(options)]
    return did_you_mean(text.partition("=")[0], known)


def _fail(error: Exception | str, code: int) -> int:
    print(f"simengine: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
