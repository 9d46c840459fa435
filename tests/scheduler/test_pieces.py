"""Runs of calls that come again, which `streams` launches as kept graphs."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from simengine_scheduler import AwaitCounts, FixedList, KernelCall, Segments, make_executor
from simengine_scheduler.core import Arrival, CountedList
from simengine_scheduler.executors import kept_pieces, pieces_trial
from simengine_scheduler.launch import BufferSet
from simengine_scheduler.testing import CalledDevice
from tests.scheduler import test_compiled_random as random_lists


class Chains:
    """Some chains of calls on cells of their own. The bits show in which order the calls of a chain ran."""

    def __init__(self, device: CalledDevice, chains: int = 4, length: int = 6, shared: bool = False) -> None:
        self.table = Segments()
        self.buffers = BufferSet()
        self.addend = self.buffers.add("addend", 1, 8)
        self.cells = [1] * chains
        self.calls = [[self._call(device, c, k, shared) for k in range(length)] for c in range(chains)]

    def _call(self, device: CalledDevice, chain: int, number: int, shared: bool) -> KernelCall:
        def body(addend: int) -> None:
            self.cells[chain] = (self.cells[chain] * 31 + 7 * number + addend) % 2**64

        updates = (self.table.intern("cell", chain), *((self.table.intern("shared"),) if shared else ()))
        launch = device.launch(body, [self.addend], self.buffers)
        return KernelCall(f"call {chain}.{number}", launch, (), (), updates)

    def after(self, runs: Sequence[Sequence[tuple[int, int]]], addend: int = 1) -> list[int]:
        """What the cells are after runs, each of which has calls by chain and number."""
        cells = [1] * len(self.cells)
        for chain, number in (call for run in runs for call in run):
            cells[chain] = (cells[chain] * 31 + 7 * number + addend) % 2**64
        return cells


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs cost little, so that each run of calls asks for one when it comes for the second time, and always pay."""
    monkeypatch.setattr(kept_pieces, "_PRICE", (2, 0))
    monkeypatch.setattr(kept_pieces, "_TOGETHER", 1000)
    monkeypatch.setattr(kept_pieces, "_FIRST", 1000.0)
    monkeypatch.setattr(pieces_trial, "_LEARNING", 1 << 30)


def make(device: CalledDevice, table: Segments, **options: Any) -> Any:
    return make_executor("streams", segments=table, driver=device, stream=0, **options)


def pieces_of(executor: Any) -> kept_pieces.KeptPieces:
    found = executor._compiled.pieces
    assert found is not None
    return found


def test_a_run_that_comes_again_is_one_launch(cheap: None) -> None:
    device = CalledDevice(3)
    chains = Chains(device)
    with make(device, chains.table) as executor:
        for k in range(3):
            executor.run([list(own) for own in chains.calls])
            executor.synchronize()
            assert pieces_of(executor).native.launched == (4 if k == 2 else 0)
        assert len(pieces_of(executor)) == 4
        assert chains.cells == chains.after([[(c, n) for c in range(4) for n in range(6)]] * 3)


def test_a_graph_orders_calls_as_hazards_ask_and_no_more(cheap: None) -> None:
    """Two calls read what the first writes, the fourth follows both, and the last has nothing to do with them."""
    device, table = CalledDevice(1), Segments()
    a, b, c, d = (table.intern(name) for name in "abcd")
    touched = (((), (a,)), ((a,), (b,)), ((a,), (c,)), ((a, b, c), (a,)), ((), (d,)))
    calls = [KernelCall("call", device.launch(lambda: None), reads, writes, ()) for reads, writes in touched]
    with make(device, table) as executor:
        for _ in range(3):
            executor.run([calls])
        ((_, waits, _),) = device.graphs.values()
        assert list(map(set, waits)) == [set(), {0}, {0}, {1, 2}, set()]


def test_python_builds_graphs_where_the_driver_has_no_functions_for_it(
    cheap: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = CalledDevice(3)
    known: Any = device.functions()
    monkeypatch.setattr(device, "functions", lambda: known._replace(instantiate=0))
    monkeypatch.setattr(kept_pieces, "_PRICE_IN_PYTHON", (2, 0))
    chains = Chains(device)
    with make(device, chains.table) as executor:
        for _ in range(3):
            executor.run([list(own) for own in chains.calls])
        executor.synchronize()
        assert pieces_of(executor).native.launched == 4
        assert chains.cells == chains.after([[(c, n) for c in range(4) for n in range(6)]] * 3)


def test_a_part_that_comes_again_is_one_launch_in_other_company(cheap: None) -> None:
    """Two chains of one emitter, of which the second is as long as counts say."""
    device = CalledDevice(5)
    chains = Chains(device, 2, 9)
    first, second = chains.calls
    with make(device, chains.table) as executor:
        for length in range(2, 9):
            executor.run([[*first, *second[:length]]])
        executor.synchronize()
        assert pieces_of(executor).native.launched == 1
        runs = [[(c, n) for c, size in ((0, 9), (1, length)) for n in range(size)] for length in range(2, 9)]
        assert chains.cells == chains.after(runs)


def test_lists_that_conflict_keep_their_order(cheap: None) -> None:
    device = CalledDevice(5)
    chains = Chains(device, shared=True)
    with make(device, chains.table) as executor:
        for _ in range(3):
            executor.run([list(own) for own in chains.calls])
        executor.synchronize()
        assert pieces_of(executor).native.launched == 0
        assert device.graphs == {}
        assert device.max_running == 1


def test_fixed_lists_that_come_and_go_are_a_launch_each(cheap: None) -> None:
    device = CalledDevice(1)
    chains = Chains(device)
    lists = [FixedList(own) for own in chains.calls]
    runs = [[0, 1, 2, 3], [0, 1, 2, 3], [0, 2], [1, 2, 3], [3]]
    with make(device, chains.table) as executor:
        for number, run in enumerate(runs):
            trace = executor.run([lists[c] for c in run])
            assert trace.counters.calls == 6 * len(run)
            assert number < 2 or pieces_of(executor).native.launched == len(run)
        executor.synchronize()
        assert chains.cells == chains.after([[(c, n) for c in run for n in range(6)] for run in runs])


def test_a_buffer_that_moves_gives_the_calls_a_new_graph(cheap: None) -> None:
    device = CalledDevice(2)
    chains = Chains(device, 1)
    with make(device, chains.table) as executor:
        for _ in range(3):
            executor.run([chains.calls[0]])
        executor.synchronize()
        chains.addend.rebind(5, 8)
        wanted = chains.after([[(0, n) for n in range(6)]] * 3)
        for _ in range(2):
            executor.run([chains.calls[0]])
            executor.synchronize()
            for number in range(6):
                wanted[0] = (wanted[0] * 31 + 7 * number + 5) % 2**64
            assert chains.cells == wanted
        assert pieces_of(executor).built == 2


def test_a_graph_is_built_once_it_would_have_paid() -> None:
    device = CalledDevice(2)
    chains = Chains(device, 1)
    with make(device, chains.table) as executor:
        base, each = kept_pieces._PRICE
        pays = 1 + -(-(base + 6 * each) // 11)  # from the second time on it saves 11 of 12
        for k in range(1, pays + 2):
            executor.run([chains.calls[0]])
            assert pieces_of(executor).built == int(k >= pays)


def test_graphs_that_never_come_again_stop_others_from_being_built(cheap: None) -> None:
    """Each chain comes twice, which pays for a graph, and then no more."""
    device = CalledDevice(2)
    chains = Chains(device, 200, 2)
    with make(device, chains.table) as executor:
        for own in chains.calls:
            executor.run([own])
            executor.run([own])
        assert 60 < pieces_of(executor).built < 80
        last = chains.calls[-1]
        for _ in range(4):
            executor.run([last])
        assert pieces_of(executor).native.launched == 1


def test_few_graphs_are_kept(cheap: None) -> None:
    device = CalledDevice(2)
    chains = Chains(device, 40, 2)
    with make(device, chains.table, graphs=1) as executor:
        for _ in range(3):
            for own in chains.calls:
                executor.run([own])
        executor.synchronize()
        assert len(device.graphs) == len(pieces_of(executor)) == 16
        assert chains.cells == chains.after([[(c, n) for c in range(40) for n in range(2)]] * 3)
    assert device.graphs == {}


def test_an_emitter_goes_on_once_the_piece_that_it_awaits_has_ended(cheap: None) -> None:
    device = CalledDevice(4, 0.05)
    chains = Chains(device)
    seen: list[int] = []

    def emit(own: list[KernelCall], chain: int) -> Iterator[Any]:
        yield from own[:3]
        yield AwaitCounts(own[1])
        seen.append(chains.cells[chain])
        yield from own[3:]

    with make(device, chains.table) as executor:
        for _ in range(4):
            executor.run([emit(own, c) for c, own in enumerate(chains.calls)])
            executor.synchronize()
        assert pieces_of(executor).native.launched == 8
        assert chains.cells == chains.after([[(c, n) for c in range(4) for n in range(6)]] * 4)
    assert len(seen) == 16
    assert min(seen) > 31**2  # two calls at least had run


def test_a_piece_of_a_counted_list_ends_with_the_call_that_is_awaited(cheap: None) -> None:
    device = CalledDevice(4)
    chains = Chains(device, 1)
    own = chains.calls[0]
    listed = CountedList([*own[:3], own[3], own[4], Arrival(own[2], lambda: None), own[5]])
    with make(device, chains.table) as executor:
        for _ in range(4):
            executor.run([listed])
        executor.synchronize()
        assert sorted(len(bodies) for bodies, _, _ in device.graphs.values()) == [1, 2, 3]
        assert pieces_of(executor).native.launched == 3
        assert chains.cells == chains.after([[(0, n) for n in range(6)]] * 4)


def test_a_run_may_be_long(cheap: None) -> None:
    """An emitter that goes on and on, and awaits a call now and then, also one that it yielded long ago."""
    device = CalledDevice(4, 1.0)
    chains = Chains(device, 1)
    device.enqueue = lambda stream, body: body()  # type: ignore[method-assign]
    own, rounds = chains.calls[0], 27_000

    def emit() -> Iterator[Any]:
        yield from own
        for number in range(rounds):
            yield from own[1:]
            if number % 10_000 == 0:
                yield AwaitCounts(own[3 if number % 20_000 else 0])

    with make(device, chains.table) as executor:
        executor.run([emit()])
        executor.synchronize()
    assert chains.cells[0] == _long(rounds)


def _long(rounds: int) -> int:
    cell = 1
    for number in (*range(6), *(number for _ in range(rounds) for number in range(1, 6))):
        cell = (cell * 31 + 7 * number + 1) % 2**64
    return cell


def test_calls_that_only_python_can_launch_are_in_no_graph(cheap: None) -> None:
    device = CalledDevice(4)
    chains = Chains(device, 1)
    own = chains.calls[0]
    foreign = KernelCall("foreign", device.foreign_launch(lambda: own[2].launch.function(1)), (), (), own[2].updates)
    with make(device, chains.table) as executor:
        for _ in range(4):
            executor.run([[*own[:2], foreign, *own[3:]]])
        executor.synchronize()
        assert pieces_of(executor).native.launched == 2
        assert chains.cells == chains.after([[(0, n) for n in range(6)]] * 4)


@pytest.mark.parametrize("options", [{"pieces": False}, {"record": "order"}, {"completion": "polling"}])
def test_there_are_no_pieces(options: dict[str, Any], cheap: None) -> None:
    device = CalledDevice(4)
    chains = Chains(device)
    with make(device, chains.table, **options) as executor:
        for _ in range(3):
            executor.run([list(own) for own in chains.calls])
        executor.synchronize()
    assert device.graphs == {}
    assert executor._compiled.pieces is None


@pytest.mark.parametrize("check", [random_lists.run_and_compare, random_lists.refuse_and_go_on, random_lists.fault])
def test_random_lists(check: Callable[[int], None], cheap: None) -> None:
    for seed in range(3000, 3040):
        check(seed)


def test_random_parts_of_lists(cheap: None) -> None:
    """Emitters yield random parts of chains, await some calls, and some chains share a cell."""
    for seed in range(60):
        draw = random.Random(seed)
        device = CalledDevice(seed, draw.choice([0.05, 0.5, 0.9]))
        chains = Chains(device, draw.randrange(1, 5), 8, shared=draw.random() < 0.2)
        runs: list[list[tuple[int, int]]] = []

        def emit(parts: list[tuple[int, int]], draw: random.Random, chains: Chains) -> Iterator[Any]:
            for chain, number in parts:
                yield chains.calls[chain][number]
                if draw.random() < 0.15:
                    yield AwaitCounts(chains.calls[chain][number])

        options = {"window": draw.choice([1, 2, 5, 32]), "streams": draw.randrange(1, 6)}
        with make(device, chains.table, **options) as executor:
            for _ in range(6):
                by_emitter = []
                for chain in range(len(chains.cells)):
                    start = draw.randrange(3)
                    by_emitter.append([(chain, n) for n in range(start, draw.choice([4, 8]))])
                runs += by_emitter
                emitters = [emit(parts, draw, chains) for parts in by_emitter]
                if draw.random() < 0.3:
                    emitters = [partial(list, list(each))() for each in by_emitter and emitters]
                    emitters = [[call for call in own if isinstance(call, KernelCall)] for own in emitters]
                executor.run(emitters)
                executor.synchronize()
                assert chains.cells == chains.after(runs), seed
