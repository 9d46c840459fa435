"""`simengine view`: a page in the browser that shows worlds while they step."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any

from simengine import Simulation, load_model
from simengine.cli.environments.acting import add_acting_options, chosen_environment, make_actor
from simengine.cli.environments.ids import add_import_option, make_environment, require_one_model
from simengine.cli.options.errors import UsageError
from simengine.cli.options.keyframe import keyframe_of
from simengine.cli.options.settings import add_batch_options, positive
from simengine.cli.results.result_file import as_json
from simengine.view.session import Session
from simengine.view.worlds import SimulatedWorlds, Worlds

if TYPE_CHECKING:
    from simengine.view.page import Page

WORLDS = 16


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "view",
        help="show worlds in the browser while they step",
        description="Serves a page that shows the worlds and controls them. Ctrl-C ends it. A world of a model whose "
        "state is not finite stands still until it is reset. Episodes of an environment restart by themselves.",
    )
    parser.add_argument("what", help="a model's short name, an MJCF file, or an environment's id")
    parser.add_argument("--worlds", type=positive, default=WORLDS, help=f"worlds in the batch (default: {WORLDS})")
    add_acting_options(parser)
    add_import_option(parser)
    parser.add_argument("--keyframe", help="name or number of the keyframe at which worlds of a model start")
    parser.add_argument(
        "--ctrl",
        choices=("random", "zero"),
        help="controls of a model; random: drawn anew every tenth of a second; zero: those of the initial state "
        "(default: random)",
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
    environment = chosen_environment(options.what, options)
    if environment is not None:
        return _show_environment(make_page, environment, options)
    model = load_model(options.what)
    keyframe = keyframe_of(model, options.keyframe)
    with Simulation(
        model,
        options.worlds,
        backend=options.backend or "auto",
        dtype=options.dtype or "float32",
        on_nonfinite="freeze",
    ) as sim:
        worlds = SimulatedWorlds(sim, keyframe, options.ctrl != "zero", options.seed or 0)
        about = {"model": model.name, "worlds": sim.num_worlds, "backend": sim.backend, "dtype": sim.dtype}
        return _show(make_page, worlds, about, lambda: {}, options)


def _show_environment(make_page: type[Page], name: str, options: argparse.Namespace) -> int:
    from simengine.cli.environments.worlds import EnvironmentWorlds  # it loads JAX, for which models need not wait

    for option in ("ctrl", "keyframe"):
        if getattr(options, option) is not None:
            raise UsageError(f"--{option} is for models, and {name} is an environment; leave out --{option}")
    require_one_model(name, "a page shows")
    envs = make_environment(name, options.worlds, options.backend, options.dtype)
    actor, note = make_actor(options, name, envs, options.seed or 0)
    if note:
        print(f"simengine: {note}", file=sys.stderr)
    worlds = EnvironmentWorlds(name, envs, actor, options.seed or 0)
    about = {"environment": name, "actions": actor.name, "model": envs.pure.model.name, "worlds": worlds.num_worlds}
    about |= {"backend": envs.runner.backend, "dtype": envs.runner.dtype}
    episodes = lambda: {"episodes": worlds.episodes, "return_mean": worlds.return_mean}  # noqa: E731
    return _show(make_page, worlds, about, episodes, options)


def _show(
    make_page: type[Page],
    worlds: Worlds,
    about: dict[str, Any],
    found: Callable[[], dict[str, Any]],
    options: argparse.Namespace,
) -> int:
    """Serve a page until it ends, and print what was done.

    Args:
        make_page: the class of the page.
        worlds: what it shows.
        about: facts about the worlds, for scripts.
        found: returns further facts at the end.
        options: the parsed options.
    """
    session = Session(worlds)
    try:
        page = make_page(session, options.host, options.port)
    except OSError as error:
        raise UsageError(str(error)) from error
    try:
        said = f"{worlds.num_worlds} worlds of {worlds.name!r} on backend {about['backend']!r}"
        said += f", {about['actions']}" if "actions" in about else ""
        print(f"{said}: {page.url} (Ctrl-C ends it)", file=sys.stderr if options.json else sys.stdout, flush=True)
        if not options.no_browser:
            webbrowser.open(page.url)
        began = perf_counter()
        with suppress(KeyboardInterrupt):  # the usual end
            session.run(page.update, options.seconds)
        seconds = perf_counter() - began
    finally:
        page.close()
    if options.json:
        made = {"steps": session.steps, "seconds": round(seconds, 3), "frozen": worlds.frozen()}
        speed = round(session.steps * worlds.num_worlds / seconds)
        print(as_json({**about, "url": page.url, **made, "steps_per_s": speed, **found()}))
    return 0


def _page_class() -> type[Page]:
    """Return the class of the page. Raises UsageError if the extra `view` is not installed."""
    try:
        from simengine.view.page import Page
    except ImportError as error:
        raise UsageError(str(error)) from error
    return Page


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
