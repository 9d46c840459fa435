"""The loop: its pace against a clock that the test moves, pause, single steps, resets and requests."""

from __future__ import annotations

import threading

import pytest

from simengine.view.session import FRAME, Session
from simengine.view.worlds import Worlds
from tests.view.stub import Clock, CountingWorlds


def session(cost: float = 1e-4, timestep: float = 0.01) -> tuple[Session, CountingWorlds, Clock]:
    clock = Clock()
    worlds: Worlds = CountingWorlds(clock, cost, timestep=timestep)
    assert isinstance(worlds, CountingWorlds)
    return Session(worlds, clock.now, clock.take), worlds, clock


@pytest.mark.parametrize("scale", [0.1, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("timestep", [0.002, 0.01, 0.3])
def test_simulated_time_keeps_the_pace(scale: float, timestep: float) -> None:
    loop, worlds, _ = session(cost=1e-6, timestep=timestep)
    loop.time_scale = scale
    loop.run(lambda: None, seconds=20)
    assert worlds.time(0) == pytest.approx(20 * scale, abs=2 * timestep + 2 * FRAME * scale)
    assert loop.real_time_factor == pytest.approx(scale, rel=0.15, abs=timestep)
    assert loop.steps == sum(worlds.calls)


def test_a_slow_machine_gives_up_steps_and_still_answers() -> None:
    loop, worlds, _ = session(cost=0.02)  # twice as long as the time that a step simulates
    frames = []
    loop.run(lambda: frames.append(loop.steps), seconds=10)
    assert len(frames) >= 9 / FRAME * 0.9
    assert loop.real_time_factor < 0.6
    assert max(worlds.calls) == 1


def test_a_long_pause_of_the_machine_is_not_made_up_for() -> None:
    loop, worlds, clock = session(cost=1e-4)
    loop.tick()
    clock.take(0.5)
    loop.tick()  # learns what a step costs
    worlds.calls.clear()
    clock.take(60)
    loop.tick()
    assert sum(worlds.calls) * worlds.cost <= FRAME
    worlds.calls.clear()
    clock.take(0.05)
    loop.tick()
    assert 5 <= sum(worlds.calls) <= 5 + FRAME / worlds.timestep  # the earlier steps took a part of a frame


def test_as_fast_as_it_goes_fills_the_frame() -> None:
    loop, worlds, _ = session(cost=1e-4)
    loop.time_scale = None
    loop.run(lambda: None, seconds=10)
    assert loop.real_time_factor > 0.5 * worlds.timestep / worlds.cost
    assert max(worlds.calls) * worlds.cost <= FRAME


def test_the_first_step_may_take_long() -> None:
    loop, worlds, _ = session(cost=5.0)
    loop.time_scale = None
    loop.tick()
    worlds.cost = 1e-4
    worlds.calls.clear()
    for _ in range(30):
        loop.tick()
    assert max(worlds.calls) > 100


def test_pause_stops_and_play_goes_on_without_a_jump() -> None:
    loop, worlds, clock = session()
    loop.paused = True
    for _ in range(5):
        clock.take(1.0)
        assert loop.tick() == 0
    assert worlds.calls == []
    loop.paused = False
    clock.take(0.03)
    loop.tick()
    clock.take(0.03)
    loop.tick()
    assert 1 <= sum(worlds.calls) <= 6


def test_a_single_step_pauses() -> None:
    loop, worlds, clock = session()
    loop.step_once()
    clock.take(10)
    loop.tick()
    assert loop.paused
    assert worlds.calls == [1]
    assert loop.steps == 1


def test_reset_goes_to_the_worlds_and_keeps_the_pace() -> None:
    loop, worlds, clock = session()
    loop.paused, loop.time_scale = True, 0.5
    loop.reset()
    loop.reset(2)
    assert worlds.resets == [None, 2]
    assert loop.paused
    assert loop.time_scale == 0.5
    loop.paused = False
    for _ in range(3):
        clock.take(0.04)
        loop.tick()
    assert sum(worlds.calls) >= 1


def test_requests_of_other_threads_run_in_the_loop_in_their_order() -> None:
    loop, _, _ = session()
    ran: list[tuple[int, threading.Thread]] = []

    def ask() -> None:
        for number in range(20):
            loop.request(lambda number=number: ran.append((number, threading.current_thread())))

    other = threading.Thread(target=ask)
    other.start()
    other.join()
    assert ran == []
    loop.tick()
    assert [number for number, _ in ran] == list(range(20))
    assert {thread for _, thread in ran} == {threading.current_thread()}


def test_run_ends_after_its_time() -> None:
    loop, _, clock = session()
    drawn = []
    loop.run(lambda: drawn.append(clock.now()), seconds=1.0)
    assert clock.now() - 100.0 == pytest.approx(1.0, abs=2 * FRAME)
    assert len(drawn) == pytest.approx(1 / FRAME, abs=2)
