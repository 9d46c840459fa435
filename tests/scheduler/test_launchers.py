"""Threads that make the driver's calls of `streams`: how many there are, and that none is left behind by a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from simengine_scheduler import AwaitCounts, FixedList, KernelCall, Options, Segments, make_executor
from simengine_scheduler.core import Arrival, CountedList, Item
from simengine_scheduler.executors import compiled, processors
from simengine_scheduler.launch import BufferSet
from simengine_scheduler.testing.null_driver import NullDriver, NullLaunch


def calls_of(table: Segments, count: int) -> list[KernelCall]:
    buffers, cells = BufferSet(), [table.intern("cell", number) for number in range(5)]
    return [KernelCall(str(n), NullLaunch(1, buffers), (), (), (cells[n % 5],)) for n in range(count)]


def awaiting(calls: list[KernelCall]) -> Iterator[Item]:
    for number, call in enumerate(calls):
        yield call
        if number % 10 == 9:
            yield AwaitCounts(call)


def counted(calls: list[KernelCall]) -> CountedList:
    first = calls[: len(calls) // 2]
    return CountedList([*first, Arrival(first[-1], lambda: None), *calls[len(first) :]])


@pytest.mark.parametrize("launchers", [0, 1, 3])
@pytest.mark.parametrize("kind", [FixedList, list, awaiting, counted])
def test_all_calls_were_made_when_a_run_returns(kind: Any, launchers: int) -> None:
    driver, table = NullDriver(threads=True), Segments()
    calls = calls_of(table, 60)
    options: dict[str, Any] = {"segments": table, "driver": driver, "stream": 0, "launchers": launchers}
    with make_executor("streams", **options) as executor:
        lists = [kind(calls), kind(calls[:7])]
        for _ in range(20):
            before = driver.called
            executor.run(lists if kind is not awaiting else [kind(calls), kind(calls[:7])])
            assert driver.called - before == 67


@pytest.mark.parametrize(("cores", "expected"), [(1, 0), (4, 0), (6, 1), (8, 2), (14, 3)])
def test_there_are_so_many_by_the_number_of_cores(monkeypatch: pytest.MonkeyPatch, cores: int, expected: int) -> None:
    monkeypatch.setattr(compiled, "processors_of_quota", lambda: cores)
    asked: list[int] = []

    class Noting(compiled.Issuer):
        def __init__(self, *given: Any) -> None:
            asked.append(given[-1])
            super().__init__(*given)

    monkeypatch.setattr(compiled, "Issuer", Noting)
    for threads in (True, False):
        with make_executor("streams", segments=Segments(), driver=NullDriver(threads=threads), stream=0):
            pass
    assert asked == [expected, 0], "a driver without contexts is called by one thread"


def test_a_quota_of_a_container_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(processors, "usable_processors", lambda: 64)
    file = tmp_path / "cpu.max"
    monkeypatch.setattr(processors, "_QUOTA", file)
    for text, expected in (("400000 100000\n", 4), ("max 100000\n", 64), ("", 64)):
        file.write_text(text)
        assert processors.processors_of_quota() == expected
    file.unlink()
    assert processors.processors_of_quota() == 64


def test_a_negative_number_is_refused() -> None:
    with pytest.raises(ValueError, match="launchers=-1"):
        Options(launchers=-1)
