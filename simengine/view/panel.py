"""`Panel`: the controls on the page.

The server calls back from threads of its own. Every callback therefore asks the session to do it between steps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import mujoco
import numpy as np

from simengine.view.drawing import Choices, Drawing
from simengine.view.extras import viser
from simengine.view.session import Session

_SLOWEST, _FASTEST = 0.1, 4.0  # time scales
_ALL, _ONE = "all worlds", "the chosen world"
_SHOWN_EVERY = 6  # frames from one status line to the next


class Panel:
    """The controls on the page.

    Args:
        server: the page's server.
        session: what they control.
        choices: what they choose.
        drawing: what the status line tells of.
    """

    def __init__(self, server: viser.ViserServer, session: Session, choices: Choices, drawing: Drawing) -> None:
        self._gui, self._session, self._choices, self._drawing = server.gui, session, choices, drawing
        self._worlds = session.worlds
        self._filling = False  # whether values are set from here, which is no wish of a user
        self._frames = 0
        self._status = self._gui.add_markdown("")
        self._add_pace()
        self._add_worlds()
        self._add_overlays()
        self._add_inputs()
        self._add_push()
        self._fill()

    def update(self) -> None:
        """Show the status line anew, some times in a second, and the inputs of the chosen world."""
        self._frames += 1
        if self._frames % _SHOWN_EVERY == 1:
            self._status.content = self.status()
            self._pause.label = "Play" if self._session.paused else "Pause"
            self._fill()

    def status(self) -> str:
        """Return the status line, in Markdown."""
        worlds, session, shown = self._worlds, self._session, self._drawing.shown
        number = f"{worlds.num_worlds} world{'s' if worlds.num_worlds > 1 else ''}"
        pace = "paused" if session.paused else f"{session.real_time_factor:.2f} times real time"
        drawn = "" if len(shown) == worlds.num_worlds else f" · {len(shown)} drawn, from world {shown.start} on"
        return (
            f"**t = {worlds.time(self._choices.followed):.3f} s** in world {self._choices.followed} · {pace}\n\n"
            f"{session.steps_per_second:,.0f} steps/s · {number} · {worlds.frozen()} frozen{drawn}"
            + (f"\n\n{note}" if (note := worlds.note(self._choices.followed)) else "")
        )

    def _on(self, handle: Any, action: Callable[[Any], object]) -> None:
        """Let the session call `action` with the handle's value when a user changes it."""

        def changed(event: Any) -> None:
            if not self._filling:
                self._session.request(partial(action, event.target.value))

        handle.on_update(changed)

    def _choose(self, handle: Any, name: str, of: Callable[[Any], Any] = lambda value: value) -> None:
        self._on(handle, lambda value: setattr(self._choices, name, of(value)))

    def _click(self, button: Any, action: Callable[[], object]) -> None:
        button.on_click(lambda _: self._session.request(action))

    def _add_pace(self) -> None:
        session = self._session
        with self._gui.add_folder("Pace"):
            self._pause = self._gui.add_button("Pause")
            step, reset = self._gui.add_button("Step"), self._gui.add_button("Reset")
            reset_one = self._gui.add_button("Reset the chosen world")
            scale = self._gui.add_slider("Time scale", _SLOWEST, _FASTEST, 0.1, session.time_scale or 1.0)
            free = self._gui.add_checkbox("As fast as it goes", session.time_scale is None)

        def set_scale(_: Any) -> None:
            session.time_scale = None if free.value else float(scale.value)

        self._click(self._pause, lambda: setattr(session, "paused", not session.paused))
        self._click(step, session.step_once)
        self._click(reset, session.reset)
        self._click(reset_one, lambda: session.reset(self._choices.followed))
        for handle in (scale, free):
            self._on(handle, set_scale)

    def _add_worlds(self) -> None:
        mj, last = self._worlds.mj, self._worlds.num_worlds - 1
        with self._gui.add_folder("Worlds"):
            if last:
                chosen = self._gui.add_number("Chosen world", 0, min=0, max=last, step=1)
                self._on(chosen, self._follow)
                show = self._gui.add_dropdown("Show", (_ALL, _ONE))
                self._choose(show, "alone", lambda value: value == _ONE)
                self._choose(self._gui.add_slider("Distance", 0.5, 4.0, 0.1, 1.0), "spread")
            self._choose(self._gui.add_checkbox("Camera follows", False), "camera_follows")
            groups = sorted({int(group) for group in mj.geom_group})
            for group in groups if len(groups) > 1 else ():
                box = self._gui.add_checkbox(f"Geoms of group {group}", group in self._choices.groups)
                self._on(box, partial(self._show_group, group))

    def _show_group(self, group: int, shown: bool) -> None:
        (self._choices.groups.add if shown else self._choices.groups.discard)(group)

    def _follow(self, world: float) -> None:
        self._choices.followed = int(np.clip(round(world), 0, self._worlds.num_worlds - 1))
        self._fill()

    def _add_overlays(self) -> None:
        with self._gui.add_folder("Forces"):
            self._choose(self._gui.add_checkbox("Contacts", self._choices.contacts), "contacts")
            self._choose(self._gui.add_checkbox("Applied forces", self._choices.applied), "applied")

    def _add_inputs(self) -> None:
        inputs = self._worlds.inputs
        self._sliders: list[Any] = []
        if not inputs.names:
            return
        with self._gui.add_folder(f"{inputs.title} of the chosen world"):
            self._held: Any = self._gui.add_checkbox("Hold", False, hint="hold what is below; moving one does it too")
            for name, low, high in zip(inputs.names, inputs.low.tolist(), inputs.high.tolist(), strict=True):
                span = max(high - low, 1e-6)
                self._sliders.append(
                    self._gui.add_slider(name, low, low + span, span / 1000, float(np.clip(0.0, low, high)))
                )
        self._on(self._held, self._hold)
        for slider in self._sliders:
            self._on(slider, lambda _: self._hold(True))

    def _hold(self, held: bool) -> None:
        values = np.array([slider.value for slider in self._sliders])
        self._worlds.hold(self._choices.followed, values if held else None)
        self._fill()

    def _fill(self) -> None:
        """Let the sliders show the inputs of the chosen world."""
        if not self._sliders:
            return
        self._filling = True
        try:
            self._held.value = held = self._worlds.is_held(self._choices.followed)
            if not held:
                for slider, value in zip(self._sliders, self._worlds.input(self._choices.followed), strict=True):
                    slider.value = float(np.clip(value, slider.min, slider.max))
        finally:
            self._filling = False

    def _add_push(self) -> None:
        mj = self._worlds.mj
        names = [_name(mj, mujoco.mjtObj.mjOBJ_BODY, body, "body") for body in range(1, mj.nbody)]
        if not names:
            return
        with self._gui.add_folder("Push the chosen world", expand_by_default=False):
            body = self._gui.add_dropdown("Body", names)
            weight = float(mj.body_subtreemass[0] * np.linalg.norm(mj.opt.gravity)) or 1.0
            force = self._gui.add_vector3("Force [N]", (float(f"{weight / 2:.2g}"), 0.0, 0.0), step=weight / 100)
            apply, stop = self._gui.add_button("Apply"), self._gui.add_button("Stop")

        def push(value: Any) -> None:
            self._worlds.push(self._choices.followed, 1 + names.index(body.value), np.array(value, float))

        self._click(apply, lambda: push(force.value))
        self._click(stop, lambda: push((0.0, 0.0, 0.0)))


def _name(mj: mujoco.MjModel, kind: mujoco.mjtObj, index: int, what: str) -> str:
    return mujoco.mj_id2name(mj, kind, index) or f"{what} {index}"
