"""The page in a real browser: what it draws, and that its controls do what they say."""

from __future__ import annotations

import argparse
import io
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("viser")

from simengine import Simulation, to_host
from simengine.cli.environments import acting
from simengine.cli.environments import ids as environments
from simengine.cli.environments.worlds import EnvironmentWorlds
from simengine.view.page import Page
from simengine.view.session import Session
from simengine.view.worlds import SimulatedWorlds, Worlds

pytestmark = pytest.mark.slow

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
PICTURE = "SIMENGINE_VIEW_PICTURE"
"""Variable that names the file for a picture of the page, such as docs/images/view.png."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless browser: the machine's own, or that of Playwright."""
    sync_api = pytest.importorskip("playwright.sync_api")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_api.sync_playwright() as playwright:
        if found is None and not Path(playwright.chromium.executable_path).exists():
            pytest.skip("there is no browser: install chromium, or call `playwright install chromium`")
        opened = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield opened
        opened.close()


class Shown:
    """A session of worlds on a page, whose loop runs in a thread, and the page in the browser."""

    def __init__(self, browser: Any, worlds: Worlds) -> None:
        self.session = Session(worlds)
        self.page = Page(self.session)
        self._ended = False
        self._loop = threading.Thread(target=self._run)
        self._loop.start()
        self.tab = browser.new_page(viewport={"width": 1100, "height": 700})
        self.tab.goto(self.page.url)
        self.tab.get_by_role("button", name="Step", exact=True).wait_for(timeout=60_000)
        sleep(5)  # the geometry follows the controls

    def _run(self) -> None:
        while not self._ended:
            self.session.run(self.page.update, seconds=0.2)

    def close(self) -> None:
        self.tab.close()
        self._ended = True
        self._loop.join()
        self.page.close()

    def click(self, button: str) -> None:
        self.tab.get_by_role("button", name=button, exact=True).click()

    def picture(self) -> np.ndarray:
        """The part of the page beside the panel, (height, width, 3)."""
        shot = self.tab.screenshot(clip={"x": 320, "y": 0, "width": 440, "height": 700})
        return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB"), int)

    def in_loop(self, ask: Callable[[], Any]) -> Any:
        """The answer to a question that only the loop's thread may put."""
        answers: list[Any] = []
        self.session.request(lambda: answers.append(ask()))
        wait_until(lambda: bool(answers))
        return answers[0]


class Ants(Shown):
    """A simulation of ants."""

    def __init__(self, browser: Any, num_worlds: int, random: bool = False) -> None:
        self.sim = Simulation("ant", num_worlds, backend="host", on_nonfinite="freeze")
        self.worlds = SimulatedWorlds(self.sim, random=random)
        super().__init__(browser, self.worlds)

    def close(self) -> None:
        super().close()
        self.sim.close()

    def qpos(self) -> np.ndarray:
        return self.in_loop(lambda: np.array(to_host(self.sim.qpos)))


def wait_until(met: Callable[[], bool], seconds: float = 30) -> None:
    ends = monotonic() + seconds
    while not met():
        assert monotonic() < ends, "it did not happen in time"
        sleep(0.05)


@pytest.fixture
def ants(browser: Any) -> Iterator[Ants]:
    shown = Ants(browser, 4)
    yield shown
    shown.close()


def test_the_canvas_shows_the_worlds(ants: Ants) -> None:
    ants.click("Pause")
    wait_until(lambda: ants.session.paused)
    sleep(1)
    everything = ants.picture()
    assert everything.std() > 5
    ants.in_loop(lambda: ants.page.choices.groups.clear())
    sleep(2)
    nothing = ants.picture()
    changed = np.abs(everything - nothing).max(-1) > 20
    assert changed.mean() > 0.05


def test_controls_of_the_page_control_the_session(ants: Ants) -> None:
    ants.click("Pause")
    wait_until(lambda: ants.session.paused)
    steps = ants.session.steps
    ants.click("Step")
    wait_until(lambda: ants.session.steps == steps + 1)
    ants.tab.get_by_role("button", name="Play", exact=True).wait_for()
    ants.click("Reset the chosen world")
    wait_until(lambda: ants.in_loop(lambda: ants.worlds.time(0)) == 0)
    assert ants.in_loop(lambda: ants.worlds.time(1)) > 0
    ants.click("Reset")
    wait_until(lambda: ants.in_loop(lambda: ants.worlds.time(1)) == 0)
    ants.tab.get_by_label("As fast as it goes", exact=True).click()
    wait_until(lambda: ants.session.time_scale is None)
    ants.click("Play")
    wait_until(lambda: not ants.session.paused)
    wait_until(lambda: ants.session.real_time_factor > 1.5)


def test_choices_of_the_page_reach_the_drawing(ants: Ants) -> None:
    ants.tab.get_by_label("Contacts", exact=True).click()
    wait_until(lambda: ants.page.choices.contacts)
    chosen = ants.tab.get_by_label("Chosen world", exact=True)
    chosen.fill("2")
    chosen.press("Enter")
    wait_until(lambda: ants.page.choices.followed == 2)
    ants.tab.get_by_text("in world 2").wait_for()
    ants.tab.get_by_label("Hold", exact=True).click()
    wait_until(lambda: ants.in_loop(lambda: ants.worlds.is_held(2)))
    assert not ants.in_loop(lambda: ants.worlds.is_held(0))


def test_a_push_from_the_page_moves_the_chosen_world(ants: Ants) -> None:
    ants.tab.get_by_text("Push the chosen world").click()
    ants.click("Apply")
    wait_until(lambda: bool(ants.in_loop(lambda: ants.worlds.applied_forces(0).force.any())))
    wait_until(lambda: abs(ants.qpos()[0, 0] - ants.qpos()[1, 0]) > 0.1)
    ants.click("Stop")
    wait_until(lambda: not ants.in_loop(lambda: ants.worlds.applied_forces(0).force.any()))


def test_an_environment_shows_its_returns_and_obeys_the_page(browser: Any) -> None:
    name = "simengine/InvertedPendulum-v5"
    envs = environments.make_environment(name, 4, "host", None)
    options = argparse.Namespace(policy=None, actions="random")
    worlds = EnvironmentWorlds(name, envs, acting.make_actor(options, name, envs, 0)[0], 0)
    shown = Shown(browser, worlds)
    try:
        for text in ("random actions", "in episode", "mean return"):
            shown.tab.get_by_text(text).first.wait_for(timeout=30_000)
        wait_until(lambda: worlds.episodes > 3)
        shown.click("Pause")
        wait_until(lambda: shown.session.paused)
        before = shown.in_loop(lambda: np.asarray(envs.state.episode).copy())
        shown.click("Reset")
        wait_until(lambda: bool((shown.in_loop(lambda: np.asarray(envs.state.episode)) == before + 1).all()))
        everything = shown.picture()
        assert everything.std() > 5
        shown.click("Step")
        wait_until(lambda: shown.in_loop(lambda: np.asarray(envs.state.length).tolist()) == [1] * 4)
        shown.tab.get_by_text("Action of the chosen world").wait_for()
        shown.tab.get_by_label("Hold", exact=True).click()
        wait_until(lambda: shown.in_loop(lambda: worlds.is_held(0)))
        shown.tab.get_by_label("As fast as it goes", exact=True).click()
        wait_until(lambda: shown.session.time_scale is None)
        steps = shown.session.steps
        shown.click("Play")
        wait_until(lambda: shown.session.steps > steps + 20)
    finally:
        shown.close()


def test_picture_of_the_page(browser: Any, tmp_path: Path) -> None:
    """With the variable `SIMENGINE_VIEW_PICTURE` the picture is kept, for the guide."""
    shown = Ants(browser, 16, random=True)
    try:
        shown.tab.get_by_label("Contacts", exact=True).click()
        shown.click("Reset")
        wait_until(lambda: 0.9 < shown.in_loop(lambda: shown.worlds.time(0)) < 2)
        shown.click("Pause")
        touching = [shown.in_loop(partial(shown.worlds.contact_forces, world)) for world in range(16)]
        strongest = [np.linalg.norm(forces.force, axis=1).max(initial=0) or np.inf for forces in touching]
        chosen = shown.tab.get_by_label("Chosen world", exact=True)
        chosen.fill(str(np.argmin(strongest)))  # the arrows of a hard landing leave the picture
        chosen.press("Enter")
        sleep(2)
        shown.tab.mouse.click(288, 99)  # closes the note that the browser draws without a GPU
        sleep(1)
        file = Path(os.environ.get(PICTURE, tmp_path / "view.png"))
        Image.open(io.BytesIO(shown.tab.screenshot())).convert("RGB").save(file, optimize=True)
        assert file.stat().st_size < 200_000
        assert shown.picture().std() > 5
    finally:
        shown.close()
