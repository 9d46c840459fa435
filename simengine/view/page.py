"""`Page`: the server of the page, with the drawing and the panel."""

from __future__ import annotations

import contextlib
import socket
import sys

from simengine.errors import SimengineError
from simengine.view.drawing import Choices, Drawing
from simengine.view.extras import viser
from simengine.view.panel import Panel
from simengine.view.session import Session

PORT = 8080
"""The port that is taken if none is given and it is free."""

_ATTEMPTS = 100
_AMBIENT = 0.35  # light from all around


class PortError(SimengineError, OSError):
    """The page cannot be served at an address."""


class Page:
    """The page that shows a session.

    Args:
        session: what is shown and controlled.
        host: address at which it is served. "0.0.0.0" lets other machines see the page and control the session.
        port: port; None for 8080, or the next one that is free.

    Attributes:
        choices: what is shown.
        url: address of the page.

    Raises:
        PortError: the page cannot be served there.
    """

    def __init__(self, session: Session, host: str = "127.0.0.1", port: int | None = None) -> None:
        port = _free_port(host, port)
        with contextlib.redirect_stdout(sys.stderr):  # the server prints its address, and standard output has results
            self._server = viser.ViserServer(host, port, label=session.worlds.name, verbose=False)
        self._server.gui.configure_theme(show_logo=False, show_share_button=False)
        # with all of the default light, bright colours turn white
        self._server.scene.configure_environment_map("studio", environment_intensity=_AMBIENT)
        self.choices = Choices()
        self._drawing = Drawing(self._server, session.worlds, self.choices)
        self._panel = Panel(self._server, session, self.choices, self._drawing)
        shown = "localhost" if host in ("0.0.0.0", "127.0.0.1") else host
        self.url = f"http://{shown}:{self._server.get_port()}"

    def update(self) -> None:
        """Draw a frame. The thread that steps the worlds calls it between steps."""
        self._drawing.update()
        self._panel.update()

    def close(self) -> None:
        """Stop the server."""
        with contextlib.redirect_stdout(sys.stderr):
            self._server.stop()


def _free_port(host: str, port: int | None) -> int:
    """Return the given port if it is free, or the first free one.

    The server itself would go on to another port in silence, and look for one without end where the address is wrong.
    """
    failure: OSError | None = None
    for candidate in range(PORT, PORT + _ATTEMPTS) if port is None else (port,):
        try:
            with socket.create_server((host, candidate)):
                return candidate
        except OSError as error:
            failure = error
    raise PortError(
        f"the page cannot be served at {host}, port {port or f'{PORT} to {PORT + _ATTEMPTS - 1}'}, because "
        f"{(failure and failure.strerror) or failure}; choose another with --host and --port"
    )
