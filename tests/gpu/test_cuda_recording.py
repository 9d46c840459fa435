"""Lists recorded on the GPU: shapes and durations are those of the kernels, and the model can replay them."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.launch_costs import launches, measured
from benchmarks.record_lists import Workload
from simengine_scheduler import CudaLaunch, KernelCall, Segments, make_executor, validate
from simengine_scheduler.gpu_model import GPUS, ListRecorder, RecordedList


@pytest.mark.gpu
def test_a_duration_is_the_work_beyond_an_empty_kernels() -> None:
    """A kernel that lasts 50 us is recorded with that, an empty one with nothing, whatever the host does meanwhile."""
    table = Segments()
    x = (table.intern("x"),)
    empty, pause = launches(3e-3)
    _, fifty = launches(50e-6)
    calls = [KernelCall("empty", empty, (), x), KernelCall("fifty", fifty, (), x)] * 10

    def recorded(overhead: float, calls: list[KernelCall]) -> RecordedList:
        inner = make_executor("serial", device="cuda", record="times")
        recorder = ListRecorder(inner, table, KernelCall("pause", pause, (), ()), overhead)
        for _ in range(8):
            recorder.run([calls])
        return recorder.result()

    overhead = recorded(0.0, calls[:1] * 20).calls[0].seconds
    assert 0 < overhead < 20e-6
    found = {call.name: call for call in recorded(overhead, calls).calls}
    assert found["fifty"].seconds == pytest.approx(50e-6, abs=3e-6)
    assert found["empty"].seconds < 1.5e-6
    assert found["fifty"].shape[:2] == (1, 1)
    assert found["empty"].shape[:2] == (1, 32)
    assert all(1 <= call.shape.registers <= 255 for call in found.values())


@pytest.mark.gpu
def test_a_simulations_lists_are_recorded_timed_and_replayed() -> None:
    workload = Workload("ant@64", "cuda")
    for emission in workload.emissions:
        recorded = RecordedList.from_data(workload.recorded(emission, 5, 4))
        assert len(recorded.calls) >= 20
        assert 20e-6 < recorded.seconds() < 5e-3
        assert max(call.shape.blocks for call in recorded.calls) >= 16
        measured_us = 1e6 * workload.seconds("serial", emission, 5, 2)
        simulated: Any = make_executor("simulated", segments=recorded.segments, model="serial", record="times")
        trace = simulated.run(recorded.emitters())
        assert validate(trace.order, trace, recorded.segments) == []
        # other processes may slow what is measured, never what is modelled
        assert 0 < 1e6 * simulated.now < 3 * measured_us
    workload.sim.close()


@pytest.mark.gpu
def test_costs_of_launching_are_of_the_order_of_the_preset() -> None:
    found = measured()
    assert all(seconds >= 0 for seconds in found.values())
    assert found["chain"] < found["crossing"] < 20e-6
    assert found["launch"] == pytest.approx(GPUS["h200"].host.launch, rel=2.0)


@pytest.mark.gpu
def test_resources_are_what_the_driver_says() -> None:
    launch = launches(1e-6)[0]
    assert isinstance(launch, CudaLaunch)
    registers, static = launch.resources()
    assert registers > 0
    assert static == 0
