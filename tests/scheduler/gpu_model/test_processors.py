"""The block scheduler against cases worked out by hand: times in microseconds on four multiprocessors."""

from __future__ import annotations

from typing import Any

import pytest

from simengine_scheduler import KernelCall, PythonLaunch
from simengine_scheduler.gpu_model import LaunchShape
from simengine_scheduler.gpu_model.clock import Clock
from simengine_scheduler.gpu_model.processors import Kernel, Processors
from tests.scheduler.gpu_model.machines import US, machine, shaped

Case = tuple[LaunchShape, float]


def run(kernels: list[Case], at: float = 0.0, **given: Any) -> tuple[list[tuple[float, float]], int]:
    """Start and end [us] of kernels that come at once, and how many ran together at most."""
    clock = Clock()
    processors = Processors(machine(**given), clock)
    call = KernelCall("k", PythonLaunch(lambda: None), (), ())
    made = [Kernel(call, shape, us * US, None) for shape, us in kernels]
    for kernel in made:
        processors.submit(kernel, lambda: None)
    clock.run()
    return [(round(k.start / US, 6), round(k.end / US, 6)) for k in made], processors.peak


@pytest.mark.parametrize("blocks", [1, 16, 17, 32, 50])
def test_a_kernel_alone_takes_its_own_duration(blocks: int) -> None:
    assert run([(shaped(blocks), 6.0)]) == ([(0.0, 6.0)], 1)


def test_small_kernels_run_side_by_side() -> None:
    assert run([(shaped(4), 5.0), (shaped(8), 3.0), (shaped(4), 2.0)]) == ([(0.0, 5.0), (0.0, 3.0), (0.0, 2.0)], 3)


def test_a_kernel_that_fills_the_gpu_lets_none_in() -> None:
    # 16 blocks fill it; 32 come in two waves of 3; the last one starts when the second wave ends
    assert run([(shaped(32), 6.0), (shaped(1), 1.0)])[0] == [(0.0, 6.0), (6.0, 7.0)]


def test_what_a_last_wave_leaves_free_is_used() -> None:
    # 20 blocks: 16, then 4 at 3; the other kernel's 12 fit beside those four
    assert run([(shaped(20), 6.0), (shaped(12), 1.0)])[0] == [(0.0, 6.0), (3.0, 4.0)]


def test_later_kernels_do_not_overtake_one_that_waits_for_room() -> None:
    # 12 of 16 places are taken; of 6 blocks 4 fit, and at 2 the other 2: only then is the small one let in
    found, _ = run([(shaped(12), 6.0), (shaped(6), 2.0), (shaped(1), 1.0)])
    assert found == [(0.0, 6.0), (0.0, 4.0), (2.0, 3.0)]
    # a block of 1024 threads waits until a multiprocessor is empty, and all others wait behind it
    found, _ = run([(shaped(4), 6.0), (LaunchShape(1, 1024, 16, 0), 2.0), (shaped(1), 1.0)])
    assert found == [(0.0, 6.0), (6.0, 8.0), (6.0, 7.0)]


def test_blocks_are_spread_over_multiprocessors() -> None:
    # two blocks of 512 threads fill one; four blocks of another kernel leave room for them on each
    half = LaunchShape(4, 512, 16, 0)
    assert run([(half, 4.0), (half, 4.0), (half, 4.0)])[0] == [(0.0, 4.0), (0.0, 4.0), (4.0, 8.0)]
    # seven small blocks: two each on three, one on the fourth, which alone has room for a block of 768 threads
    big = LaunchShape(1, 768, 16, 0)
    assert run([(shaped(7), 4.0), (big, 1.0), (big, 1.0)])[0] == [(0.0, 4.0), (0.0, 1.0), (1.0, 2.0)]


def test_shared_memory_and_registers_count() -> None:
    greedy = LaunchShape(4, 32, 16, 48 * 1024)
    assert run([(greedy, 4.0), (greedy, 4.0)])[0] == [(0.0, 4.0), (4.0, 8.0)]
    wide = LaunchShape(4, 256, 255, 0)
    assert run([(wide, 4.0), (wide, 4.0)])[0] == [(0.0, 4.0), (4.0, 8.0)]


def test_resident_kernels_and_the_spacing_of_starts() -> None:
    assert run([(shaped(), 3.0)] * 3, resident=2) == ([(0.0, 3.0), (0.0, 3.0), (3.0, 6.0)], 2)
    assert run([(shaped(), 3.0)] * 3, spacing=0.5 * US)[0] == [(0.0, 3.0), (0.5, 3.5), (1.0, 4.0)]


def test_contention_counts_the_threads_of_others_only() -> None:
    # alone, waves of its own do not slow it down
    assert run([(shaped(32), 6.0)], contention=1.0)[0] == [(0.0, 6.0)]
    # the second finds half of each multiprocessor's threads taken: half as long again
    assert run([(shaped(8), 6.0), (shaped(4), 4.0)], contention=1.0)[0] == [(0.0, 6.0), (0.0, 6.0)]


def test_reset_empties_the_gpu() -> None:
    clock = Clock()
    processors = Processors(machine(), clock)
    call = KernelCall("k", PythonLaunch(lambda: None), (), ())
    for _ in range(2):
        processors.submit(Kernel(call, shaped(16), 5 * US, None), lambda: None)
    clock.advance(US)
    clock.clear()
    processors.reset()
    kernel = Kernel(call, shaped(16), 5 * US, None)
    processors.submit(kernel, lambda: None)
    clock.run()
    assert kernel.start == pytest.approx(US)
