"""Virtual time: order, processes, signals."""

from __future__ import annotations

from simengine_scheduler.gpu_model.clock import Clock, Process, Signal


def test_what_is_due_happens_in_order_and_ties_in_the_order_entered() -> None:
    clock, seen = Clock(), list[tuple[str, float]]()
    for name, time in (("c", 3.0), ("a", 1.0), ("b", 1.0)):
        clock.at(time, lambda name=name: seen.append((name, clock.now)))  # type: ignore[misc]
    clock.advance(2.0)
    assert seen == [("a", 1.0), ("b", 1.0)]
    assert clock.now == 2.0
    clock.at(0.5, lambda: seen.append(("late", clock.now)))
    assert not clock.idle
    clock.run()
    assert seen[2:] == [("late", 2.0), ("c", 3.0)]
    assert clock.idle
    assert not clock.step()


def test_an_action_may_enter_others_within_the_time_that_passes() -> None:
    clock, seen = Clock(), list[float]()

    def again() -> None:
        seen.append(clock.now)
        clock.at(clock.now + 1.0, again)

    clock.at(1.0, again)
    clock.until(3.5)
    assert seen == [1.0, 2.0, 3.0]
    assert clock.now == 3.5
    clock.until(1.0)
    assert clock.now == 3.5


def test_processes_sleep_and_wait() -> None:
    clock, seen = Clock(), list[tuple[str, float]]()
    bell = Signal(clock)

    def sleeper() -> Process:
        yield 2.0
        seen.append(("slept", clock.now))
        bell.fire()
        yield 1.0
        bell.fire()

    def waiter(name: str) -> Process:
        yield bell
        seen.append((name, clock.now))

    for process in (waiter("first"), waiter("second"), sleeper()):
        clock.spawn(process)
    clock.run()
    assert seen == [("slept", 2.0), ("first", 2.0), ("second", 2.0)]
