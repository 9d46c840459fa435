"""Networks and simulations as workloads on the GPU: the host's numbers, and the bits of serial under every executor."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from simengine.cli.main import main
from simengine_scheduler import make_executor, validate
from simengine_scheduler.study.workloads import NETWORKS, CudaTarget, HostTarget, make_network

pytestmark = pytest.mark.gpu

SIZES: dict[str, dict[str, int]] = {
    "population": {"rows": 70, "policies": 3, "most": 64},
    "wired": {"nodes": 8, "stages": 2, "channels": 5, "side": 18},
    "learning": {"policies": 3, "acts": 3, "layers": 2, "size": 32},
    "products": {"chains": 3, "length": 4, "size": 32, "bands": 2},
    "skipping": {"images": 3, "blocks": 4, "channels": 6, "side": 18},
    "clients": {"clients": 4, "rows": 20, "most": 64},
}
"""Small networks. Others have their usual size."""
EXECUTORS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("streams", {}),
    ("streams", {"completion": "polling"}),
    ("graph", {}),
    ("graph-cached", {}),
    ("device", {}),
)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_step_is_that_of_the_host(name: str) -> None:
    there, here = (make_network(name, place, **SIZES.get(name, {})) for place in (CudaTarget(), HostTarget()))
    for workload in (there, here):
        executor = make_executor("serial", **workload.options)
        workload.run(executor, 1)
        executor.synchronize()
    fields = there.memory.on_host()
    for field, expected in here.memory.on_host().items():
        if expected.dtype == np.int32:
            assert np.array_equal(fields[field], expected), field
        else:
            np.testing.assert_allclose(fields[field], expected, rtol=1e-4, atol=1e-5, err_msg=field)


@pytest.mark.parametrize("name", NETWORKS)
def test_executors_leave_the_bits_of_serial(name: str) -> None:
    workload = make_network(name, CudaTarget(), **SIZES.get(name, {}))
    states = []
    for executor_name, options in (("serial", {}), *EXECUTORS):
        workload.reset()
        made = {**workload.options, **options, "segments": workload.segments}
        executor = make_executor(executor_name, **made)
        workload.run(executor, 12)
        executor.synchronize()
        states.append(workload.state())
        executor.close()
        executor = make_executor(executor_name, **made, record="times")
        trace = workload.run(executor, 1)
        executor.synchronize()
        assert validate(trace.order, trace, workload.segments, slack=5e-6) == [], executor_name
        executor.close()
    assert len(set(states)) == 1


def test_bench_scheduler(capsys: pytest.CaptureFixture[str]) -> None:
    lists = [
        "half_cheetah:worlds=16,shards=2,settle=20",
        "ant:worlds=16,emission=ahead,settle=20",
        "population:rows=16",
    ]
    executors = ["serial", "streams", "streams:completion=polling", "graph", "graph-cached"]
    sizes = ["--seconds", "0.01", "--repeats", "2", "--traces", "1", "--json", "-"]
    code = main(["bench", "scheduler", "--backend", "cuda", "--workloads", *lists, "--executors", *executors, *sizes])
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row for row in rows if not row["good"]] == []
    assert code == 0
    assert len(rows) == 15
    streams = {row["workload"]: row for row in rows if row["executor"] == "streams"}
    assert all(row["issue_us"] > 0 and row["waits_inserted"] >= 0 for row in streams.values())
    assert all(streams[name]["check_us"] > 0 for name in (lists[0], lists[2]))  # the other is fixed: checked once
