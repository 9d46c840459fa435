"""Streams, events and graphs of the device model: times in microseconds worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from simengine_scheduler import KernelCall, PythonLaunch
from simengine_scheduler.core import Cost, Tag
from simengine_scheduler.gpu_model import GPUS, LaunchShape
from simengine_scheduler.gpu_model.clock import Clock
from simengine_scheduler.gpu_model.device import Device, Graph, Marker
from simengine_scheduler.gpu_model.driver import BodyFailed, VirtualDriver
from simengine_scheduler.gpu_model.processors import Kernel
from simengine_scheduler.gpu_model.recording import RecordedCall
from simengine_scheduler.gpu_model.virtual import VirtualLaunch
from tests.scheduler.gpu_model.machines import US, machine, shaped, with_host

COSTS = {"dispatch": 3 * US, "chain": 1 * US, "crossing": 2 * US, "mark": 0.25 * US, "node": 0.5 * US}


def device_with(**given: Any) -> Device:
    return Device(machine(**{**COSTS, **given}), Clock())


def kernel(us: float, body: Any = None, blocks: int = 1) -> Kernel:
    return Kernel(KernelCall("k", PythonLaunch(lambda: None), (), ()), shaped(blocks), us * US, body)


def times(*kernels: Kernel) -> list[tuple[float, float]]:
    return [(round(k.start / US, 6), round(k.end / US, 6)) for k in kernels]


def test_a_stream_is_in_order_and_costs_a_gap() -> None:
    device = device_with()
    a, b = kernel(5), kernel(2)
    device.launch(0, a)
    device.launch(0, b)
    device.clock.run()
    assert times(a, b) == [(3.0, 8.0), (9.0, 11.0)]
    late = kernel(1)
    device.clock.until(30 * US)
    device.launch(0, late)
    device.clock.run()
    assert times(late) == [(33.0, 34.0)]  # the stream was idle: no gap


def test_streams_run_side_by_side_and_wait_for_events() -> None:
    device = device_with()
    other = device.add_stream()
    a, b, c = kernel(5), kernel(2), kernel(1)
    device.launch(0, a)
    marker = device.record(0)
    device.launch(other, b)
    device.wait(other, marker)
    device.launch(other, c)
    device.clock.run()
    assert times(a, b, c) == [(3.0, 8.0), (3.0, 5.0), (10.0, 11.0)]
    assert marker.time == pytest.approx(8 * US)


def test_an_event_long_passed_costs_nothing_and_marks_cost_their_own_stream() -> None:
    device = device_with()
    other = device.add_stream()
    device.launch(0, kernel(1))
    marker = device.record(0)
    device.clock.until(50 * US)
    device.wait(other, marker)
    a, b, c = kernel(1), kernel(5), kernel(1)
    device.launch(other, a)
    for each in (b, c):
        device.launch(0, each)
        device.record(0)
    device.clock.run()
    assert times(a, b, c) == [(53.0, 54.0), (53.0, 58.0), (59.25, 60.25)]


def test_a_graph_runs_its_nodes_as_they_may() -> None:
    device = device_with()
    made = [kernel(us) for us in (4, 2, 1, 1)]
    graph = Graph([lambda k=k: k for k in made], [(), (), (1,), (0, 2)])  # type: ignore[misc]
    assert device.launch_graph(0, graph) == made
    after = kernel(1)
    device.launch(0, after)
    assert not device.is_empty(0)
    device.clock.run()
    assert times(*made, after) == [(3.0, 7.0), (3.0, 5.0), (5.5, 6.5), (7.5, 8.5), (9.5, 10.5)]
    assert device.is_empty(0)


def test_bodies_run_at_the_end_and_nothing_after_one_that_raises() -> None:
    device, seen = device_with(), list[float]()
    device.launch(0, kernel(5, lambda: seen.append(device.clock.now)))
    device.launch(0, kernel(1, lambda: 1 / 0))
    device.launch(0, kernel(1, lambda: seen.append(-1.0)))
    device.clock.run()
    assert seen == [pytest.approx(8 * US)]
    assert device.failure is not None
    assert isinstance(device.failure[1], ZeroDivisionError)
    device.reset()
    again = kernel(1)
    device.launch(0, again)
    device.clock.run()
    assert again.end == again.end


def test_the_driver_charges_the_host_and_shows_it_ends_late() -> None:
    host = {"query": 0.2 * US, "record": 0.3 * US, "wait": 0.1 * US}
    driver = VirtualDriver(with_host(machine(**COSTS, visible=1 * US), **host), Clock())
    event = driver.create_event(timing=True)
    assert driver.query(event)  # never recorded
    first = driver.create_event(timing=True)
    driver.record(first, 0)
    driver.device.launch(0, kernel(5))
    driver.record(event, 0)
    assert driver.clock.now == pytest.approx(0.8 * US)
    queries = 0
    while not driver.query(event):
        queries += 1
    assert driver.clock.now == pytest.approx(9.6 * US, abs=0.2 * US)  # launched at 0.5, 3 to get there, 5, 1 to see
    assert queries == pytest.approx(43, abs=2)
    assert driver.elapsed(first, event) == pytest.approx(5 * US)
    driver.synchronize(0)
    driver.destroy_event(first)
    with pytest.raises(KeyError):
        driver.query(first)


@pytest.mark.parametrize(
    ("us", "one", "sixteen"), [(2, 3.4, 3.5), (5, 6.3, 3.4), (10, 11.1, 3.4), (20, 20.7, 3.6), (50, 49.5, 3.7)]
)
def test_kernels_on_one_stream_and_on_sixteen_take_what_an_h200_does(us: float, one: float, sixteen: float) -> None:
    """256 kernels of 4 blocks that spin for so long, issued every 3.4 us: microseconds a kernel, as measured."""
    gpu = with_host(GPUS["h200"], launch=3.4 * US, keep=0.0, track=0.0)
    call = RecordedCall("k", (), (), (), LaunchShape(4, 128, 32, 0), us * US, Cost(), Tag()).kernel_call()
    for streams, measured in ((1, one), (16, sixteen)):
        driver = VirtualDriver(gpu, Clock())
        launch = VirtualLaunch(call, gpu, driver)
        handles = [driver.create_stream() for _ in range(streams)]
        for n in range(256):
            launch.issue(handles[n % streams])
        for handle in handles:
            driver.synchronize(handle)
        assert driver.clock.now / 256 / US == pytest.approx(measured, rel=0.1)


def test_the_driver_refuses_what_can_never_be() -> None:
    driver = VirtualDriver(machine(), Clock())
    stream, a, b = driver.create_stream(), driver.create_event(False), driver.create_event(False)
    driver.device.wait(0, Marker(stream, None))  # for what nobody puts there
    driver.device.wait(stream, Marker(0, None))
    driver.record(a, stream)
    with pytest.raises(AssertionError, match="block each other"):
        driver.query(a)
    with pytest.raises(AssertionError, match="stream 0 can never empty"):
        driver.synchronize(0)
    with pytest.raises(ValueError, match="elapsed"):
        driver.elapsed(a, b)
    with pytest.raises(ValueError, match="no timed events"):
        driver.build_graph([], [], [(a, b)])


def test_every_driver_call_raises_once_a_body_has() -> None:
    driver = VirtualDriver(machine(), Clock())
    driver.device.launch(0, kernel(1, lambda: 1 / 0))
    with pytest.raises(BodyFailed, match="call 'k' failed"):
        driver.synchronize(0)
    event = driver.create_event(False)
    with pytest.raises(BodyFailed):
        driver.record(event, 0)
    driver.reset()
    driver.record(event, 0)
    assert driver.query(event) or driver.query(event)
