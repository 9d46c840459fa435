"""`python -m simengine_scheduler.service`: an owner in a process of its own, until it is interrupted."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .errors import ServiceError
from .owner import serve

_EXECUTORS = ("serial", "shuffled", "streams", "threads")


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m simengine_scheduler.service", description=__doc__)
    parser.add_argument("--address", required=True, help="path of the Unix socket to listen at")
    parser.add_argument("--executor", default="threads", choices=_EXECUTORS)
    parser.add_argument("--device", choices=("host", "cuda"), help="of the executor serial")
    parser.add_argument("--limit", type=int, default=64, help="lists that a client may have under way")
    parser.add_argument("--connections", type=int, default=256, help="clients that may be connected at one time")
    parser.add_argument("--greeting", type=float, default=10.0, help="seconds until a client has said who it is")
    parser.add_argument("--memory-limit", type=int, help="bytes of the buffers of all clients together")
    parser.add_argument("--window", type=int, help="calls in flight")
    parser.add_argument("--streams", type=int, help="CUDA streams")
    parser.add_argument("--workers", type=int, help="host threads")
    parser.add_argument("--authkey-file", type=Path, help="a file whose bytes clients must know")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM, or until a fault. Returns the exit code."""
    arguments = _arguments(argv)
    optional = ("device", "window", "streams", "workers", "memory_limit")
    given = {name: getattr(arguments, name) for name in (*optional, "limit", "connections", "greeting")}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    authkey = arguments.authkey_file.read_bytes() if arguments.authkey_file is not None else None
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with serve(arguments.address, arguments.executor, authkey=authkey, **options) as owner:
            print(f"executor {arguments.executor!r} listens at {owner.address}", flush=True)
            owner.join()
    except KeyboardInterrupt:
        return 0
    except (ServiceError, RuntimeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
