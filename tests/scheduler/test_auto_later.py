"""The automatic executor after its choice: lists that change, and looks at the second fastest candidate."""

from __future__ import annotations

from simengine_scheduler import FixedList, KernelCall, PythonLaunch
from tests.scheduler.timed_executors import Bodied, Clock, Workers, counting, list_of, of, settled


def test_candidates_take_turns_again_when_the_lists_have_changed(clock: Clock) -> None:
    seconds = {"first": 1e-3, "second": 2e-3}
    executor, made = of(clock, **seconds)
    _, calls = counting(3)
    assert settled(executor, lambda: [calls()]) == 28
    assert executor.executor.name == "first"
    for _ in range(200):  # nothing has changed, and lists of somewhat other lengths are no change
        executor.run([counting(2 + _ % 4)[1]()])
    assert not executor.undecided
    made["first"].seconds, seconds["second"] = 5e-3, 1e-3  # a change of the lists that the second runs better
    _, longer = counting(30)
    runs = 0
    while not executor.undecided:
        executor.run([longer()])
        runs += 1
    assert runs <= 64
    assert executor.reason == "the lists have changed, so that candidates take turns again"
    settled(executor, lambda: [longer()])
    assert executor.executor.name == "second"
    assert made["first"].closed
    assert not made["second"].closed
    executor.close()


def test_a_change_of_kind_is_a_change_and_trials_become_rare(clock: Clock) -> None:
    executor, _ = of(clock, first=1e-3, second=2e-3)
    _, calls = counting(3)
    fixed: list[KernelCall] | FixedList = FixedList(calls())
    trials = tried = 0
    for run in range(4000):
        before = executor.undecided
        executor.run([fixed if run // 100 % 2 else calls()])
        trials += executor.undecided and not before
        tried += executor.undecided
    assert 2 <= trials <= 7
    assert tried < 400
    assert executor.executor.name == "first"


def test_a_single_candidate_is_never_tried_again(clock: Clock) -> None:
    executor, made = of(clock, only=1e-3)
    for length in (3, 30, 300):
        for _ in range(40):
            executor.run([counting(length)[1]()])
    assert made["only"].ran == 120
    assert not executor.undecided


def test_a_trial_that_was_disturbed_is_made_good_later(clock: Clock) -> None:
    """The likeliest lost a processor during the trials. Later it is seen to be faster, and stays."""
    executor, made = of(clock, first=1.2e-3, second=1e-3)
    _, calls = counting()
    settled(executor, lambda: [calls()])
    assert executor.executor.name == "second"
    made["first"].seconds = 0.5e-3
    for _ in range(1200):
        executor.run([calls()])
    assert executor.executor.name == "first"
    assert not executor.undecided
    looks = 0
    for _ in range(3000):
        before = executor.undecided
        executor.run([calls()])
        looks += executor.undecided and not before
    assert looks == 0  # the second is far off
    assert made["second"].closed


def test_looks_at_the_second_become_rare_and_cost_little(clock: Clock) -> None:
    executor, made = of(clock, first=1e-3, second=1.4e-3)
    ran, calls = counting()
    runs = settled(executor, lambda: [calls()])
    before = made["second"].ran
    for _ in range(10_000):
        executor.run([calls()])
    assert len(ran) == 3 * (runs + 10_000)
    assert executor.executor.name == "first"
    assert 0 < made["second"].ran - before < 60
    assert not made["second"].closed
    executor.close()
    assert made["second"].closed


def test_a_look_at_the_second_leaves_calls_without_bodies_to_those_that_can_run_them(clock: Clock) -> None:
    executor, made = of(clock, device=(Workers, 1e-3), serial=1.2e-3)
    with_bodies, without = list_of(Bodied(lambda: None)), list_of(PythonLaunch(lambda: None))
    settled(executor, lambda: [with_bodies])
    while not executor.undecided:
        executor.run([with_bodies])
    executor.run([without])
    assert not executor.undecided
    assert executor.executor is made["device"]
    executor.run([with_bodies])
    executor.close()


def test_a_program_may_make_other_runs_now_and_then(clock: Clock) -> None:
    """Every 16th run is of another kind of lists. It is no change, whichever run is looked at first."""
    executor, _ = of(clock, first=1e-3, second=2e-3)
    _, calls = counting(3)
    fixed = FixedList(calls())
    settled(executor, lambda: [fixed])
    for run in range(400):
        executor.run([calls() if run % 16 == 0 else fixed])
        assert not executor.undecided


def test_runs_after_the_choice_may_have_more_steps_each(clock: Clock) -> None:
    executor, _ = of(clock, first=1e-3, second=2e-3)
    settled(executor, 3)
    for _ in range(400):
        executor.run([counting(15)[1]()])
        assert not executor.undecided
