"""`simengine view`: a page in the browser that shows worlds while they step."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any

from simengine import Simulation, load_model
from simengine.cli.errors import UsageError
from simengine.cli.result_file import as_json
from simengine.cli.settings import add_batch_options, positive
from simengine.view.session import Session
from simengine.view.worlds import SimulatedWorlds

if TYPE_CHECKING:
    from simengine.view.page import Page

WORLDS = 16


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "view",
        help="show worlds in the browser while they step",
        description="Serves a page that shows the worlds and controls them. Ctrl-C ends it. A world whose state is not "
        "finite stands still until it is reset.",
    )
    parser.add_argument("model", help="a model's short name, or an MJCF file")
    parser.add_argument("--worlds", type=positive, default=WORLDS, help=f"worlds in the batch (default: {WORLDS})")
    parser.add_argument("--keyframe", help="name or number of the keyframe at which worlds start")
    parser.add_argument(
        "--ctrl",
        choices=("random", "zero"),
        default="random",
        help="random: drawn anew every tenth of a second; zero: those of the initial state (default: random)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address of the page; 0.0.0.0 for other machines too")
    parser.add_argument("--port", type=_port, help="port of the page (default: 8080, or the next one that is free)")
    parser.add_argument("--seconds", type=_seconds, help="end after this time")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    add_batch_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end and nothing else")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Run the command. It ends after the given seconds, or with Ctrl-C."""
    make_page = _page_class()
    model = load_model(options.model)
    with Simulation(
        model,
        options.worlds,
        backend=options.backend or "auto",
        dtype=options.dtype or "float32",
        on_nonfinite="freeze",
    ) as sim:
        session = Session(_worlds(sim, options))
        try:
            page = make_page(session, options.host, options.port)
        except OSError as error:
            raise UsageError(str(error)) from error
        try:
            return _serve(session, page, sim, options)
        finally:
            page.close()


def _serve(session: Session, page: Page, sim: Simulation, options: argparse.Namespace) -> int:
    """Serve the page until it ends, and print what was done."""
    worlds = f"{sim.num_worlds} worlds of {sim.model.name!r} on backend {sim.backend!r}"
    print(f"{worlds}: {page.url} (Ctrl-C ends it)", file=sys.stderr if options.json else sys.stdout, flush=True)
    if not options.no_browser:
        webbrowser.open(page.url)
    began = perf_counter()
    with suppress(KeyboardInterrupt):  # the usual end
        session.run(page.update, options.seconds)
    seconds = perf_counter() - began
    if options.json:
        done = {"model": sim.model.name, "worlds": sim.num_worlds, "backend": sim.backend, "dtype": sim.dtype}
        made = {"steps": session.steps, "seconds": round(seconds, 3), "frozen": session.worlds.frozen()}
        speed = round(session.steps * sim.num_worlds / seconds)
        print(as_json({**done, "url": page.url, **made, "steps_per_s": speed}))
    return 0


def _page_class() -> type[Page]:
    """Return the class of the page. Raises UsageError if the extra `view` is not installed."""
    try:
        from simengine.view.page import Page
    except ImportError as error:
        raise UsageError(str(error)) from error
    return Page


def _worlds(sim: Simulation, options: argparse.Namespace) -> SimulatedWorlds:
    keyframe = options.keyframe
    names = {sim.model.mj.key(index).name for index in range(sim.model.nkey)}
    if keyframe is not None and keyframe not in names and keyframe.isdecimal():
        keyframe = int(keyframe)
    try:
        return SimulatedWorlds(sim, keyframe, options.ctrl == "random", options.seed or 0)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _port(text: str) -> int:
    """Convert an argument to a port. Raises ArgumentTypeError if it is none."""
    value = int(text) if text.isascii() and text.isdigit() else 0
    if not 1 <= value < 1 << 16:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; give a number from 1 to 65535")
    return value


def _seconds(text: str) -> float:
    """Convert an argument to a time. Raises ArgumentTypeError if it is none."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no time in seconds above zero")
    return value
