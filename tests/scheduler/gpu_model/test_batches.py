"""Lists launched at once, as graphs and on persistent kernels: times in microseconds worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from simengine_scheduler import KernelCall, PythonLaunch
from simengine_scheduler.gpu_model.batches import Batch, NodeBatch
from simengine_scheduler.gpu_model.clock import Clock
from simengine_scheduler.gpu_model.device import Device
from simengine_scheduler.gpu_model.processors import Kernel
from simengine_scheduler.gpu_model.tickets import ReadyBatch, TicketBatch
from tests.scheduler.gpu_model.machines import US, machine, shaped

Case = tuple[int, float]  # blocks, us


def run(kind: type[Batch], cases: list[Case], waits: list[tuple[int, ...]], **given: Any) -> list[tuple[float, float]]:
    """Start and end [us] of each kernel of a list."""
    call = KernelCall("k", PythonLaunch(lambda: None), (), ())
    made = [Kernel(call, shaped(blocks), us * US, None) for blocks, us in cases]
    device, ended = Device(machine(**given), Clock()), list[float]()
    batch = kind(made, waits)
    batch.begin(device, lambda: ended.append(device.clock.now))
    device.clock.run()
    assert ended == [max(kernel.end for kernel in made)]
    return [(round(k.start / US, 6), round(k.end / US, 6)) for k in made]


DIAMOND: list[tuple[int, ...]] = [(), (0,), (0,), (1, 2)]


@pytest.mark.parametrize(
    ("kind", "cost"), [(NodeBatch, "node"), (TicketBatch, "release"), (ReadyBatch, "release"), (ReadyBatch, "wake")]
)
def test_a_diamond(kind: type[Batch], cost: str) -> None:
    cases = [(1, 2.0), (2, 3.0), (1, 5.0), (4, 1.0)]
    assert run(kind, cases, DIAMOND) == [(0.0, 2.0), (2.0, 5.0), (2.0, 7.0), (7.0, 8.0)]
    found = run(kind, cases, DIAMOND, **{cost: 0.5 * US})
    assert found == [(0.0, 2.0), (2.5, 5.5), (2.5, 7.5), (8.0, 9.0)]


def test_graphs_share_the_gpu_as_kernels_do() -> None:
    # 12 of 16 places for each: the second's last blocks wait, and last as long again
    assert run(NodeBatch, [(12, 4.0), (12, 4.0)], [(), ()]) == [(0.0, 4.0), (0.0, 8.0)]


def test_tickets_go_in_program_order_to_so_many_blocks() -> None:
    # eight blocks: six tiles of the first and two of the second at once, its other two when the first's end
    assert run(TicketBatch, [(6, 3.0), (4, 5.0)], [(), ()], tiles=2) == [(0.0, 3.0), (0.0, 8.0)]
    # two blocks: one holds a tile of the second, which waits for the first, so only one is left for the third
    found = run(TicketBatch, [(1, 4.0), (1, 1.0), (1, 1.0)], [(), (0,), ()], tiles=1, multiprocessors=2)
    assert found == [(0.0, 4.0), (4.0, 5.0), (4.0, 5.0)]


def test_tickets_are_taken_one_after_another_behind_the_reset() -> None:
    found = run(TicketBatch, [(4, 3.0), (4, 3.0)], [(), ()], ticket=0.1 * US, reset=2 * US)
    assert found == [(2.4, 5.4), (2.8, 5.8)]


def test_the_window_takes_in_one_call_after_another_and_bodies_last_longer_there() -> None:
    # taken in at 3, 4, 5 and 6; the last one waits for a call that ends at 9
    cases, waits = [(1, 2.0), (1, 4.0), (1, 0.5), (1, 1.0)], [(), (), (), (0,)]
    found = run(TicketBatch, cases, waits, reset=2 * US, admit=1 * US, worker=1.5, release=4 * US)
    assert found == [(3.0, 6.0), (4.0, 10.0), (5.0, 5.75), (10.0, 11.5)]
    # what is taken in behind a call that waits does not hold it up
    found = run(TicketBatch, [(1, 1.0)] * 6, [(), (0,), (), (), (), ()], admit=1 * US)
    assert found[1] == (2.0, 3.0)


def test_a_kernel_of_many_waves_takes_as_long_as_it_would_alone() -> None:
    # the block scheduler would hold 16 of 40 blocks: 3 waves of 2; so do the blocks of the persistent kernel
    assert run(TicketBatch, [(40, 6.0)], [()], tiles=4) == [(0.0, 6.0)]


def test_blocks_that_take_ready_calls_hold_no_tile_that_waits() -> None:
    cases, waits = [(1, 4.0), (1, 1.0), (1, 1.0)], [(), (0,), ()]
    found = run(ReadyBatch, cases, waits, tiles=1, multiprocessors=2, wake=0.5 * US)
    assert found == [(0.0, 4.0), (4.5, 5.5), (0.0, 1.0)]  # with tickets in program order the last one starts at 4
    # tickets of a call are taken only once it is ready, where they could have been taken before
    found = run(ReadyBatch, [(1, 4.0), (8, 1.0)], [(), (0,)], ticket=0.1 * US, wake=0.0)
    assert found == [(0.1, 4.1), (4.9, 5.9)]
    assert run(TicketBatch, [(1, 4.0), (8, 1.0)], [(), (0,)], ticket=0.1 * US)[1] == (4.1, 5.1)
