"""What the simulated executor charges the host for: graphs, hazards, scripts of fixed lists, plans."""

from __future__ import annotations

from typing import Any

import pytest

from simengine_scheduler import FixedList
from tests.scheduler.gpu_model.machines import US, Lists, machine, shaped, with_host
from tests.scheduler.simulated_lists import USUAL, fan, simulated


def test_graphs_are_kept_by_their_lists() -> None:
    recorded = fan(4, 10, 3.0)
    spent = {}
    for model in ("graph", "graph-cached"):
        executor = simulated(recorded.segments, model, record="off")
        for _ in range(3):
            executor.run(recorded.emitters())
        spent[model] = executor.now
    host = USUAL.host
    built = host.build + 40 * host.build_node
    assert spent["graph"] - spent["graph-cached"] == pytest.approx(2 * built)


def test_graphs_cost_what_they_hold() -> None:
    recorded = fan(4, 10, 3.0)  # forty calls over four combinations of segments
    costs = {"build": 20 * US, "build_node": 2 * US, "resolve": 7 * US}
    executor = simulated(recorded.segments, "graph", with_host(machine(), **costs), record="off")
    executor.run(recorded.emitters())
    assert executor.now == pytest.approx((20 + 40 * 2 + 4 * 7) * US)
    executor.run(recorded.emitters())  # built anew, over combinations that are known by now
    assert executor.now == pytest.approx((2 * (20 + 40 * 2) + 4 * 7) * US)


@pytest.mark.parametrize(("completion", "ahead"), [("events", 1), ("polling", 3)])
def test_hazards_are_looked_for_as_calls_are_pulled(completion: str, ahead: int) -> None:
    lists = Lists()
    for _ in range(3):
        lists.add("", "x", 50.0)
    gpu = with_host(machine(), track=10 * US)
    recorded = lists.build()
    executor = simulated(recorded.segments, "streams", gpu, record="off", completion=completion)
    for _ in range(2):
        begin = executor.now
        executor.run(recorded.emitters())
        executor.synchronize()
        # by events behind the first call's check, and beside its kernel; by polling behind all in the window
        assert executor.now - begin == pytest.approx((ahead * 10 + 3 * 50) * US)


def spent(executor: Any, emitters: list[Any]) -> float:
    """Virtual microseconds of a run."""
    begin = executor.now
    executor.run(emitters)
    executor.synchronize()
    return round((executor.now - begin) / US, 6)


SCRIPTED = [("streams", "events"), ("pipeline", "events"), ("pipeline", "polling")]  # completion is of streams alone


@pytest.mark.parametrize(("model", "completion"), SCRIPTED)
def test_hazards_of_fixed_lists_are_looked_for_once(model: str, completion: str) -> None:
    """By two runs of a chain of three: the second finds the script that the first has made."""
    recorded = fan(1, 3, 1.0)
    gpu = with_host(machine(), track=10 * US)
    executor = simulated(recorded.segments, model, gpu, record="off", completion=completion)
    assert [spent(executor, recorded.emitters()) for _ in range(3)] == [33.0, 3.0, 3.0]
    for _ in range(2):  # beside a generator there is no script
        assert spent(executor, [*recorded.emitters(), iter([])]) > 30.0


def test_by_polling_hazards_of_fixed_lists_are_looked_for_in_every_run() -> None:
    recorded = fan(1, 3, 1.0)
    gpu = with_host(machine(), track=10 * US)
    executor = simulated(recorded.segments, "streams", gpu, record="off", completion="polling")
    assert [spent(executor, recorded.emitters()) for _ in range(3)] == [33.0, 33.0, 33.0]


def test_a_script_that_was_let_go_is_paid_for_again() -> None:
    recorded = fan(1, 3, 1.0)
    gpu = with_host(machine(), track=10 * US)
    executor = simulated(recorded.segments, "streams", gpu, record="off", graphs=1)
    (first,) = recorded.emitters()
    other = FixedList(first)
    assert [spent(executor, [one]) for one in (first, first, other, first)] == [33.0, 3.0, 33.0, 33.0]


@pytest.mark.parametrize("policy", ["kesco", "opara"])
def test_planners_plan_a_fixed_list_once_and_others_in_every_run(policy: str) -> None:
    recorded = fan(3, 4, 5.0)
    gpu = with_host(machine(), plan=10 * US, track=1.0)  # a planned call is not tracked besides
    for again, lists in ((0, recorded.emitters()), (12, [list(emitter) for emitter in recorded.emitters()])):
        executor = simulated(recorded.segments, "streams", gpu, record="off", stream_policy=policy)
        executor.run(lists)
        assert executor.now == pytest.approx(120 * US)
        executor.run(lists)
        assert executor.now == pytest.approx((120 + 10 * again) * US)


def test_planners_see_what_calls_demand_of_the_gpu() -> None:
    """Opara issues the least demanding call first, by what its blocks fill."""
    lists = Lists()
    for n, blocks in enumerate((300, 2, 40)):
        lists.add("", chr(ord("A") + n), 5.0, shaped(blocks))
    recorded = lists.build(fixed=True)
    trace = simulated(recorded.segments, "streams", stream_policy="opara").run(recorded.emitters())
    assert [trace.order[step.seq].name for step in trace.log if step.kind == "issue"] == ["k1", "k2", "k0"]
