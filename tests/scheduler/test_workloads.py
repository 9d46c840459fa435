"""Networks as workloads: their mathematics, their routing, and the same bits under every executor."""

from __future__ import annotations

import shutil
from collections import Counter
from typing import Any

import numpy as np
import pytest

from simengine_scheduler import KernelCall, Options, make_executor, validate
from simengine_scheduler.core.dependencies import dependencies
from simengine_scheduler.study.workloads import NETWORKS, HostTarget, Network, Population, WiredNetwork, make_network
from simengine_scheduler.study.workloads.kernels import DENSE, JOIN, KERNELS, OPTIONS, Kernel, module_source
from simengine_scheduler.study.workloads.wired import watts_strogatz
from simengine_scheduler.testing.fake_device import FakeDevice
from simengine_scheduler.testing.threaded_device import PythonBody, ThreadedDevice

SMALL: dict[str, dict[str, Any]] = {
    "clients": {"clients": 4, "rows": 9, "most": 16},
    "learning": {"policies": 3, "acts": 3, "layers": 2, "size": 6},
    "population": {"rows": 9, "policies": 3, "most": 16},
    "products": {"chains": 3, "length": 3, "size": 8, "bands": 2},
    "skipping": {"images": 3, "blocks": 3, "channels": 3, "side": 5},
    "wired": {"nodes": 6, "stages": 2, "channels": 3, "side": 9},
}
STEPS = 4


def small(name: str, device: FakeDevice | None = None) -> Network:
    place = HostTarget() if device is None else HostTarget(device.launch, {"device": "cuda", "driver": device})
    return make_network(name, place, **SMALL[name])


def after_steps(workload: Network, name: str, **options: Any) -> bytes:
    """The memory after some steps from the start, each of them legal."""
    executor = make_executor(name, **{"record": "order", **workload.options, **options, "segments": workload.segments})
    workload.reset()
    for _ in range(STEPS):
        trace = workload.run(executor, 1)
        assert validate(trace.order, trace, workload.segments) == []
    executor.synchronize()
    state = workload.state()
    executor.close()
    return state


def test_every_network_is_tested() -> None:
    assert set(SMALL) == set(NETWORKS)


@pytest.mark.parametrize("name", NETWORKS)
def test_host_executors_leave_the_bits_of_serial(name: str) -> None:
    workload = small(name)
    expected = after_steps(workload, "serial")
    assert expected != small(name).state()
    for seed in range(3):
        assert after_steps(workload, "shuffled", seed=seed) == expected
    assert after_steps(workload, "threads", workers=3) == expected


@pytest.mark.parametrize("name", NETWORKS)
def test_device_executors_leave_the_bits_of_serial(name: str) -> None:
    expected = after_steps(small(name), "serial")
    device = FakeDevice(seed=1)
    workload = small(name, device)
    for executor, options in (
        ("serial", {}),
        ("streams", {"streams": 4}),
        ("streams", {"completion": "polling", "window": 8}),
        ("graph-cached", {}),
    ):
        assert after_steps(workload, executor, **options) == expected, (executor, options)
    assert device.max_running > 1


@pytest.mark.parametrize("name", NETWORKS)
def test_the_memory_shows_a_wrong_order(name: str) -> None:
    workload = small(name)
    serial = make_executor("serial", record="order")
    workload.run(serial, 1)
    order = workload.run(serial, 1).order
    bits = []
    for calls in (order, order, [*order[1:], order[0]], [*order[::2], *order[1::2]]):
        workload.reset()
        workload.run(serial, 1)
        for call in calls:
            call.launch.issue(0)
        bits.append(workload.state())
    assert bits[0] == bits[1]
    assert len(set(bits)) == 3


def test_the_list_depends_on_the_inputs() -> None:
    workload = small("population")
    executor = make_executor("serial", record="order")

    def experts() -> Counter[str]:
        order = workload.run(executor, 1).order
        return Counter(call.tag.stage for call in order if call.tag.stage.startswith("expert"))

    lists = [experts() for _ in range(6)]
    assert len({tuple(sorted(one.items())) for one in lists}) > 1
    assert {sum(one.values()) % 3 for one in lists} == {0}  # three layers of each expert that is there
    workload.reset()
    assert experts() == lists[0]


def test_rows_go_to_the_expert_with_the_best_score() -> None:
    workload = small("population")
    assert isinstance(workload, Population)
    workload.run(make_executor("serial"), 1)
    for group in workload.groups:
        chosen, lists, counts = (group.arrays[n] for n in ("chosen", "lists", "counts"))
        assert counts.sum() == group.rows
        for expert, count in enumerate(counts):
            assert lists[expert, :count].tolist() == np.flatnonzero(chosen == expert).tolist()
        assert np.abs(group.arrays["action"]).max() <= 1


def test_dense_is_a_matrix_product_on_the_rows_listed() -> None:
    rng = np.random.default_rng(0)
    x, weights, bias = (rng.standard_normal(shape).astype(np.float32) for shape in ((5, 4), (3, 2), (2,)))
    y = np.full((5, 6), 7, np.float32)
    DENSE.body(np.array([4, 1, 0]), np.array([2]), x, weights, bias, y, 3, 2, 4, 6, 1)
    assert y[[4, 1], :2] == pytest.approx(np.maximum(x[[4, 1], :3] @ weights + bias, 0), abs=1e-6)
    y[[4, 1], :2] = 7
    assert (y == 7).all()


def test_join_is_a_filter_of_the_weighted_sum() -> None:
    rng = np.random.default_rng(1)
    nodes, filters = rng.standard_normal((3, 5, 5, 2)).astype(np.float32), rng.standard_normal((3, 3, 2))
    weights, y = np.array([0.25, 0.75], np.float32), np.zeros(3 * 3 * 2, np.float32)
    JOIN.body(nodes, np.array([2, 0]), weights, filters.astype(np.float32).reshape(9, 2), y, 2, 2, 5, 2)
    joined = np.maximum(0.25 * nodes[2] + 0.75 * nodes[0], 0)
    for row, column, channel in np.ndindex(3, 3, 2):
        total = 0.0
        for dy, dx in np.ndindex(3, 3):
            v, u = 2 * row + dy - 1, 2 * column + dx - 1
            if 0 <= v < 5 and 0 <= u < 5:
                total += joined[v, u, channel] * filters[dy, dx, channel]
        assert y.reshape(3, 3, 2)[row, column, channel] == pytest.approx(total, abs=1e-5)


def test_wired_graphs_keep_their_edges_and_hazards() -> None:
    edges = watts_strogatz(32, 4, 0.75, np.random.default_rng(3))
    assert len(edges) == len(set(edges)) == 64
    assert all(a < b for a, b in edges)
    assert edges != watts_strogatz(32, 4, 0.75, np.random.default_rng(4))
    ring = watts_strogatz(6, 2, 0.0, np.random.default_rng(0))
    assert ring == [(0, 1), (0, 5), (1, 2), (2, 3), (3, 4), (4, 5)]
    with pytest.raises(ValueError, match="a ring of 4 nodes cannot have 3 neighbours each"):
        watts_strogatz(4, 3, 0.5, np.random.default_rng(0))
    network = small("wired")
    assert isinstance(network, WiredNetwork)
    calls: list[KernelCall] = list(network.list)
    behind = dict(zip((c.name for c in calls), dependencies(calls, network.segments.conflicts), strict=True))
    for number, graph in enumerate(network.graphs):
        for node in range(SMALL["wired"]["nodes"]):
            before = {calls[seq].name for seq in behind[f"stage{number}.join{node}"]}
            wanted = {f"stage{number}.dense{a}" for a, b in graph if b == node}
            assert before <= wanted if wanted else before == {"observe" if number == 0 else f"stage{number - 1}.mean"}
            assert bool(before)


def lists_of(workload: Network, steps: int) -> list[list[str]]:
    """Names of the calls of some steps."""
    executor = make_executor("serial", record="order")
    return [[call.name for call in workload.run(executor, 1).order] for _ in range(steps)]


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "wired"])
def test_lists_have_the_form_that_was_asked_for(name: str) -> None:
    varying, fixed = small(name), make_network(name, HostTarget(), **SMALL[name], form="fixed")
    lists = lists_of(varying, 8)
    assert len(set(map(tuple, lists))) > 1
    varying.reset()
    assert lists_of(varying, 8) == lists
    assert len(set(map(tuple, lists_of(fixed, 4)))) == 1
    assert [id(one) for one in fixed.emitters()] == [id(one) for one in fixed.emitters()]
    expected = after_steps(fixed, "serial")
    for options in ({"name": "shuffled", "seed": 1}, {"name": "threads", "workers": 3}):
        assert after_steps(fixed, **options) == expected
    with pytest.raises(ValueError, match="unknown form 'other'; choose one of varying, fixed"):
        make_network(name, HostTarget(), form="other")


def test_a_population_computes_the_same_in_both_forms() -> None:
    fixed = make_network("population", HostTarget(), **SMALL["population"], form="fixed")
    states = []
    for workload in (small("population"), fixed):
        workload.run(make_executor("serial"), STEPS)
        states.append({name: values for name, values in workload.memory.on_host().items() if name.startswith("action")})
    for name, values in states[0].items():
        np.testing.assert_array_equal(values, states[1][name])


def test_products_are_matrix_products() -> None:
    network = make_network("products", HostTarget(), **{**SMALL["products"], "chains": 1}, form="fixed")
    network.run(make_executor("serial"), 1)
    x = [network.memory.on_host()[f"x{k}_0"] for k in range(4)]
    calls = {call.name: call for call in network.emitters()[0] if isinstance(call, KernelCall)}
    for k in range(3):
        for band, rows in enumerate((slice(0, 4), slice(4, 8))):
            _, _, source, weights, bias, *_ = calls[f"product{k}_band{band}_0"].launch.function.args  # type: ignore[attr-defined]
            left = x[k][rows] if k % 2 == 0 else source
            right = weights if k % 2 == 0 else x[k]
            np.testing.assert_allclose(x[k + 1][rows], np.clip(left @ right + bias, -1, 1), atol=1e-5)
    with pytest.raises(ValueError, match="matrices of 10 rows cannot be cut into 4 bands"):
        make_network("products", HostTarget(), size=10, bands=4)


def test_a_policy_acts_by_what_it_has_learned_while_others_act() -> None:
    network = make_network("learning", HostTarget(), **{**SMALL["learning"], "policies": 2}, form="fixed")
    order = [call for emitter in network.emitters() for call in emitter if isinstance(call, KernelCall)]
    names = [call.name for call in order]
    before = dependencies(order, network.segments.conflicts)
    last = names.index("learn2_0")
    assert names[last - 2 : last + 4] == ["learn0_0", "learn1_0", "learn2_0", "observe_0", "look_0", "act_0"]
    assert last in before[last + 3]  # acts by the new weights
    assert last not in before[last + 1]  # and observes meanwhile
    assert {name[-1] for at in before[names.index("observe_1") :] for name in (names[other] for other in at)} == {"1"}
    forms = [tuple(len(list(emitter)) for emitter in small("learning").emitters()) for _ in range(2)]
    assert forms[0] == forms[1]


def test_a_block_that_is_left_out_leaves_the_map() -> None:
    workload = small("skipping")
    for _ in range(6):
        (names,) = lists_of(workload, 1)
        for image in ("0", "1"):
            own = [name.rsplit("_", 1)[0] for name in names if name.endswith(f"_{image}")]
            ran = [name for name in own if name.endswith("merge")]
            latest = 0
            for block in range(3):
                assert own[own.index(f"gate{block}") - 1] == f"pool{latest}"
                if f"block{block}_after{latest}_merge" in ran:
                    latest = block + 1
            assert own[-2:] == [f"pool{latest}", "classify"]
            assert len(ran) == len({name.split("_")[0] for name in ran})


def test_unknown_networks_and_steps_are_refused() -> None:
    names = "clients, learning, population, products, skipping, wired"
    with pytest.raises(ValueError, match=f"unknown network 'nothing'; choose one of {names}"):
        make_network("nothing", HostTarget())
    with pytest.raises(ValueError, match="was told to run 0 steps"):
        small("wired").run(make_executor("serial"), 0)


def machine_code(source: str, arch: int, *options: str) -> bytes:
    """What NVRTC makes of a source; skips where CuPy is not installed."""
    nvrtc = pytest.importorskip("cupy.cuda").nvrtc
    program = nvrtc.createProgram(source, "networks.cu", (), ())
    try:
        nvrtc.compileProgram(program, [f"--gpu-architecture=sm_{arch}", *OPTIONS, *options])
        return bytes(nvrtc.getCUBIN(program))
    finally:
        nvrtc.destroyProgram(program)


@pytest.mark.parametrize("arch", [80, 90, 100])
def test_kernels_compile_for_cuda(arch: int) -> None:
    code = machine_code(module_source(), arch)
    assert all(kernel.name.encode() in code for kernel in KERNELS)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_bodies_compile_for_workers(kernel: Kernel) -> None:
    code = machine_code(kernel.body_source(), 90, "--relocatable-device-code=true")
    assert kernel.body_name.encode() in code
    others = [other.body_name for other in KERNELS if other is not kernel]
    assert not [name for name in others if name.encode() in code]  # a list links several bodies


@pytest.mark.parametrize("name", NETWORKS)
def test_workers_leave_the_bits_of_serial(name: str) -> None:
    """The protocol of executor `device`, on host threads."""
    if shutil.which("g++") is None and shutil.which("clang++") is None:
        pytest.skip("needs a C++ compiler")
    expected = after_steps(small(name), "serial")
    workload = make_network(name, HostTarget(lambda body: PythonBody(lambda tile: body())), **SMALL[name])
    executor = ThreadedDevice(Options(segments=workload.segments, record="order"), workers=3)
    for _ in range(STEPS):
        trace = executor.run(workload.emitters())
        assert validate(trace.order, trace, workload.segments) == []
    assert workload.state() == expected
