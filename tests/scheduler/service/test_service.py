"""Clients and their owner in one process: results, overlap, fairness, sharing, failures, limits, ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine_scheduler import Segments
from simengine_scheduler.service import (
    Client,
    ClientCall,
    ListFailed,
    OwnerLost,
    QueueFull,
    RequestRefused,
    Ticket,
    connect,
    serve,
)
from simengine_scheduler.testing.fake_device import FakeDevice
from tests.scheduler.service.owners import DEVICE, HOST, Blocks, Gate, fail_to_launch, make_owner, mix, mixed, step_of

BUFFERS = ["a", "b", "c"]


def with_arrays(address: str, name: str) -> tuple[Client, list[Any]]:
    client = connect(address, name=name)
    return client, [client.allocate(buffer, 4, np.uint64) for buffer in BUFFERS]


def bits(arrays: list[Any]) -> bytes:
    return b"".join(a.tobytes() for a in arrays)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.parametrize(("kind", "graph"), [(k, False) for k in HOST + DEVICE] + [(k, True) for k in DEVICE])
def test_clients_get_the_bits_that_each_would_get_alone(kind: str, graph: bool) -> None:
    with make_owner(kind, seed=5) as owner:
        clients = [with_arrays(owner.address, f"c{k}") for k in range(3)]
        lists = [step_of(client, BUFFERS, first=10 * k, graph=graph) for k, (client, _) in enumerate(clients)]
        for _ in range(4):
            tickets = [client.submit(step) for (client, _), step in zip(clients, lists, strict=True) for _ in range(2)]
        for ticket in tickets:
            ticket.wait(20)
            assert ticket.done
        for k, (client, arrays) in enumerate(clients):
            assert bits(arrays) == mixed(8, first=10 * k)
            client.close()


@pytest.mark.parametrize("kind", HOST + DEVICE)
@settings(max_examples=5, deadline=None)
@given(st.randoms(use_true_random=False))
def test_random_lists_of_several_clients(kind: str, draw: Random) -> None:
    def pairs() -> list[tuple[int, int]]:
        return [(draw.randrange(3), draw.randrange(3)) for _ in range(draw.randrange(9))]

    with make_owner(kind, seed=draw.randrange(100)) as owner:
        tickets, checks = list[Ticket](), list[tuple[list[Any], list[Any]]]()
        clients = [with_arrays(owner.address, f"c{k}") for k in range(draw.randrange(1, 4))]
        for client, arrays in clients:
            kernel, expected = client.function("mix"), [np.zeros(4, np.uint64) for _ in BUFFERS]
            plans = [pairs() for _ in range(2)]
            lists = [
                client.define(
                    [
                        ClientCall(f"mix{k}", kernel, (k, BUFFERS[a], BUFFERS[b]), [BUFFERS[a]], (), [BUFFERS[b]])
                        for k, (a, b) in enumerate(plan)
                    ]
                )
                for plan in plans
            ]
            for _ in range(4):
                which = draw.randrange(2)
                tickets.append(client.submit(lists[which]))
                for k, (a, b) in enumerate(plans[which]):
                    mix(k, expected[a], expected[b])
            checks.append((arrays, expected))
        for ticket in tickets:
            ticket.wait(20)
        for arrays, expected in checks:
            assert bits(arrays) == bits(expected)
        for client, _ in clients:
            client.close()


@pytest.mark.parametrize("kind", HOST + DEVICE)
def test_an_empty_list_and_an_idle_owner(kind: str) -> None:
    with make_owner(kind) as owner, connect(owner.address) as client:
        empty = client.define([])
        for _ in range(3):
            client.submit(empty).wait(20)
            time.sleep(0.01)  # the run has ended


def test_calls_of_different_clients_run_at_once() -> None:
    barrier = threading.Barrier(3, timeout=20)
    with make_owner("threads", meet=barrier.wait) as owner:
        clients = [connect(owner.address, name=f"c{k}") for k in range(3)]
        tickets = [c.submit(c.define([ClientCall("meet", c.function("meet"))])) for c in clients]
        for ticket in tickets:
            ticket.wait(20)  # the barrier lets nobody pass alone


def test_a_list_joins_a_run_that_is_going_on() -> None:
    gate = Gate()
    with make_owner("threads", gate=gate) as owner, connect(owner.address) as slow, connect(owner.address) as quick:
        held = slow.submit(slow.define([ClientCall("gate", slow.function("gate"))]))
        assert gate.entered.wait(20)
        for _ in range(3):
            quick.submit(quick.define([])).wait(20)
        assert not held.done
        gate.open.set()
        held.wait(20)


def test_clients_take_turns_call_by_call() -> None:
    gate, order = Gate(), list[int]()
    with make_owner("serial", gate=gate, log=order.append) as owner:
        clients = [connect(owner.address, name=f"c{k}") for k in range(2)]
        held = clients[0].submit(clients[0].define([ClientCall("gate", clients[0].function("gate"))]))
        assert gate.entered.wait(20)
        log = [c.define([ClientCall("log", c.function("log"), (k,)) for _ in range(3)]) for k, c in enumerate(clients)]
        tickets = [held, *(c.submit(step) for c, step in zip(clients, log, strict=True))]
        for client in clients:
            client.define([])  # is answered when the submissions before it have arrived
        gate.open.set()
        for ticket in tickets:
            ticket.wait(20)
        assert order in ([0, 1, 0, 1, 0, 1], [1, 0, 1, 0, 1, 0])


@pytest.mark.parametrize("kind", DEVICE)
def test_a_list_as_a_graph(kind: str) -> None:
    device = FakeDevice(2)
    with make_owner(kind, device=device) as owner, connect(owner.address, name="c") as client:
        array = client.allocate("a", 4, np.uint64)
        step = step_of(client, ["a"], calls=3, graph=True)
        for _ in range(2):
            client.submit(step).wait(20)
        assert array.any()
        assert len(device.graphs) == 1
        client.forget(step)
        assert not device.graphs
        client.submit(client.define([], graph=True)).wait(20)
        device.build_graph = refuse_a_graph  # type: ignore[method-assign]
        with pytest.raises(
            ListFailed, match="call 'list 2' of client 'c' failed: .*cannot be built .no such node.; define"
        ):
            client.submit(step_of(client, ["a"], graph=True)).wait(20)
        client.submit(step_of(client, ["a"])).wait(20)


def refuse_a_graph(launches: Any, waits: Any, events: Any) -> int:
    raise ValueError("no such node")


@pytest.mark.parametrize("kind", HOST + DEVICE)
def test_a_buffer_shared_on_purpose_is_ordered_by_hazards(kind: str) -> None:
    with make_owner(kind, seed=2) as owner, connect(owner.address) as one, connect(owner.address) as two:
        array = one.allocate("x", 4, np.uint64, shared=True)
        other = two.attach("x")
        steps = [step_of(client, ["x"], calls=3, first=20 * k) for k, client in enumerate((one, two))]
        one.submit(steps[0]).wait(20)
        two.submit(steps[1]).wait(20)
        expected = np.zeros(4, np.uint64)
        for first in (0, 20):
            for k in range(3):
                expected = expected * np.uint64(31) + expected * np.uint64(6364136223846793005) + np.uint64(first + k)
        assert array.tolist() == other.tolist() == expected.tolist()
        one.close()
        until(lambda: len(owner.clients) == 1)
        two.submit(steps[1]).wait(20)  # what is shared outlives the client that made it
        with pytest.raises(RequestRefused, match="there is a shared buffer 'x' already"):
            connect(owner.address).allocate("x", 1, shared=True)


@pytest.mark.parametrize("kind", HOST + DEVICE)
def test_a_call_that_fails_ends_its_list_and_what_builds_on_it(kind: str) -> None:
    """On the fake device a body that raises is a fault, so there a launch is refused instead."""
    with make_owner(kind, refuse=fail_to_launch) as owner:
        (bad, arrays), (good, others) = with_arrays(owner.address, "bad"), with_arrays(owner.address, "good")
        mix, fail = bad.function("mix"), bad.function("fail" if kind in HOST else "refuse")
        update = ClientCall("mix", mix, (1, "a", "a"), updates=["a"])
        broken = bad.define([update, ClientCall("broken", fail, updates=["a"]), update])
        fine, others_list = step_of(bad, BUFFERS), step_of(good, BUFFERS)
        tickets = [bad.submit(broken), bad.submit(fine)]
        running = [good.submit(others_list) for _ in range(5)]
        with pytest.raises(ListFailed, match=r"call 'broken' of client 'bad' failed: \w+Error: no convergence") as info:
            tickets[0].wait(20)
        assert info.value.call == "broken"
        with pytest.raises(ListFailed, match="it was left out, because call 'broken'"):
            tickets[1].wait(20)
        for ticket in running:
            ticket.wait(20)
        assert bits(others) == mixed(5)
        assert arrays[0].tolist() == [1] * 4  # one update, and nothing after it
        for array in arrays:
            array[:] = 0
        bad.submit(fine).wait(20)
        assert bits(arrays) == mixed(1)


def test_lists_submitted_behind_a_failure_are_left_out() -> None:
    gate = Gate()
    with make_owner("threads", gate=gate) as owner, connect(owner.address, name="c") as client:
        array = client.allocate("a", 4, np.uint64)
        held = client.submit(client.define([ClientCall("gate", client.function("gate"), updates=["a"])]))
        broken = client.define([ClientCall("broken", client.function("fail"), updates=["a"])])
        after = step_of(client, ["a"], calls=2)
        tickets = [client.submit(step) for step in (broken, after, after)]
        gate.open.set()
        held.wait(20)
        for ticket, call in zip(tickets, ("broken", "broken", "broken"), strict=True):
            with pytest.raises(ListFailed, match="call 'broken'") as info:
                ticket.wait(20)
            assert info.value.call == call
        assert not array.any()
        client.submit(after).wait(20)
        assert array.any()


def test_a_full_queue_is_refused_in_time_and_harms_nothing() -> None:
    gate = Gate()
    with make_owner("threads", limit=3, gate=gate) as owner, connect(owner.address, name="busy") as client:
        array = client.allocate("a", 4, np.uint64)
        held = client.define([ClientCall("gate", client.function("gate"), updates=["a"])])
        step = step_of(client, ["a"], calls=1, first=1)
        tickets = [client.submit(held), client.submit(step), client.submit(step)]
        with pytest.raises(QueueFull, match=r"client 'busy' has 3 lists under way, its limit.* wait for a ticket"):
            client.submit(step, timeout=0.02)
        with pytest.raises(TimeoutError, match="has not ended after"):
            tickets[2].wait(0.01)
        gate.open.set()
        tickets[2].wait(20)
        assert array.tolist() == [2**64 - 1 & (31 + 6364136223846793005 + 1)] * 4
        client.submit(step, timeout=0).wait(20)


@pytest.mark.parametrize("kind", ["threads", "streams"])
def test_a_lost_client_is_drained_and_the_others_go_on(kind: str) -> None:
    gate = Gate()
    device = FakeDevice(1, eagerness=0.0)  # goes on only when it is asked
    options: dict[str, Any] = {"device": device} if kind in DEVICE else {}
    blocks = Blocks()
    with make_owner(kind, gate=gate, blocks=blocks, **options) as owner:
        (lost, _), (good, arrays) = with_arrays(owner.address, "lost"), with_arrays(owner.address, "good")
        step, other = step_of(lost, BUFFERS), step_of(good, BUFFERS)
        if kind == "threads":
            lost.submit(lost.define([ClientCall("gate", lost.function("gate"), updates=["a"])]))
            assert gate.entered.wait(20)
        for _ in range(5):
            lost.submit(step)
        lost.close()  # the owner sees no more than of the death of its process
        if kind == "threads":
            until(lambda: owner.clients == ["good"])
            assert blocks.back == []  # a call of it is running
        good.submit(other).wait(20)
        gate.open.set()
        until(lambda: sorted(blocks.back) == [0, 1, 2])
        good.submit(other).wait(20)
        assert bits(arrays) == mixed(2)
        newcomer, again = with_arrays(owner.address, "newcomer")  # with zeros
        newcomer.submit(step_of(newcomer, BUFFERS)).wait(20)
        assert bits(again) == mixed(1)


@pytest.mark.parametrize("kind", DEVICE)
def test_a_fault_of_the_device_ends_the_owner_and_every_client_is_told(kind: str) -> None:
    owner = make_owner(kind)
    bad, good = connect(owner.address, name="bad"), connect(owner.address, name="good")
    ticket = bad.submit(bad.define([ClientCall("illegal", bad.function("fail"))]))
    with pytest.raises(OwnerLost, match=r"CUDA fault ended the context.*client 'bad' cannot go on"):
        ticket.wait(20)
    with pytest.raises(OwnerLost, match=r"CUDA fault.*serial.*check_each=True.*client 'good' cannot go on"):
        good.submit(good.define([])).wait(20)
    with pytest.raises(OwnerLost):  # the same again
        good.define([])
    with pytest.raises(RuntimeError, match="CUDA fault"):
        owner.join(20)
    owner.close()


def test_a_closed_owner_tells_its_clients() -> None:
    gate = Gate()
    owner = make_owner("threads", gate=gate)
    client, idle = connect(owner.address), connect(owner.address, name="idle")
    running = client.submit(client.define([ClientCall("gate", client.function("gate"))]))
    assert gate.entered.wait(20)
    closing = threading.Thread(target=owner.close)
    closing.start()
    with pytest.raises(OwnerLost, match=f"the owner at {owner.address} has been closed; client 'idle' cannot go on"):
        until(lambda: idle.define([]) is None)
    with pytest.raises(OwnerLost, match="has been closed"):
        running.wait(20)
    gate.open.set()
    closing.join(20)
    assert not closing.is_alive()
    with pytest.raises(
        OwnerLost, match=r"no owner listens at .*; start one with python -m simengine_scheduler.service"
    ):
        connect(owner.address, timeout=0)


def test_names_of_segments_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """An owner that lives for long must not remember every list and every client that it has had."""
    table, sizes, blocks = Segments(), list[int](), Blocks()
    monkeypatch.setattr("simengine_scheduler.service.owner.Segments", lambda: table)
    with make_owner("serial", blocks=blocks) as owner:
        for _ in range(6):
            client, _ = with_arrays(owner.address, "c")
            for _ in range(3):
                step = step_of(client, BUFFERS)
                client.submit(step).wait(20)
                client.forget(step)
            client.close()
            until(lambda: not blocks.held)
            sizes.append(len(table))
        assert sizes[0] == 4
        assert sizes[-1] <= 8  # a client that comes early has the names of a second one


def test_a_closed_client_says_so() -> None:
    with make_owner() as owner:
        client = connect(owner.address, name="c")
        client.close()
        with pytest.raises(OwnerLost, match="client 'c' has been closed"):
            client.define([])


def test_serve_refuses_what_it_cannot_share(tmp_path: Any) -> None:
    with pytest.raises(ValueError, match="executor 'graph' cannot be shared by clients; choose one of serial"):
        serve(None, "graph")
    with pytest.raises(TypeError, match="serve\\(\\) sets option 'record' itself"):
        serve(None, "threads", record="times")
    with pytest.raises(ValueError, match="limit=0"):
        serve(None, "threads", limit=0)
    address = str(tmp_path / "owner")
    with serve(address), pytest.raises(ValueError, match="another owner listens at"):
        serve(address)
    with pytest.raises(OwnerLost, match="no owner can listen at /nowhere/owner"):
        serve("/nowhere/owner")
