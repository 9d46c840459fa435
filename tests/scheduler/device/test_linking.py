"""Workers compile and link, with and without the window among them, on a machine without a GPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from simengine_scheduler.device.linking import compile_body, link_worker, management, refuse_whole_blocks
from simengine_scheduler.launch.tasks import DeviceBody

pytest.importorskip("cuda.bindings.nvjitlink")
ARCH = 90
ELF = b"\x7fELF"


def body(name: str, threads: int, text: str) -> DeviceBody:
    """A body that works on numbers of its tile."""
    source = f"""extern "C" __device__ void {name}(const unsigned long long* s, int tile, char* memory) {{
  float* x = (float*)s[0] + tile * {threads};
  float* own = (float*)memory;
  {text}
}}"""
    return DeviceBody(name, compile_body(source, name, ARCH), threads, 64)


def anew(key: str, make: Callable[[], bytes]) -> bytes:
    return make()


WARP = body("of_a_warp", 32, "own[threadIdx.x] = x[threadIdx.x]; __syncwarp(); x[threadIdx.x] = own[31 - threadIdx.x];")
BLOCK = body("of_a_block", 128, "own[threadIdx.x] = *x; __syncthreads(); x[threadIdx.x] = own[127 - threadIdx.x];")


def test_reset_and_window_are_machine_code() -> None:
    assert management(ARCH)[:4] == ELF


@pytest.mark.parametrize("form", [(), (True,), (False, True), (False, False, True), (True, False, True)])
@pytest.mark.parametrize(("bodies", "threads"), [((WARP,), 32), ((WARP, BLOCK), 128)])
def test_workers_of_bodies_with_fewer_threads_are_machine_code(
    bodies: tuple[DeviceBody, ...], threads: int, form: tuple[bool, ...]
) -> None:
    assert link_worker(bodies, threads, 64, ARCH, anew, *form)[:4] == ELF


@pytest.mark.parametrize(
    "text",
    [
        "own[threadIdx.x] = *x; __syncthreads(); x[threadIdx.x] = own[63 - threadIdx.x];",
        "if (__syncthreads_or(*x > 0.0f)) x[threadIdx.x] = 1.0f;",
        'asm volatile("bar.arrive 1, 64;" ::: "memory");',
        "x[blockDim.x - 1 - threadIdx.x] = 1.0f;",
    ],
)
def test_bodies_that_could_tell_larger_blocks_are_refused_by_name(text: str) -> None:
    other = body("other", 64, text)
    with pytest.raises(ValueError, match=r"merged=True cannot run body 'other' of 64 threads in blocks of 128"):
        refuse_whole_blocks((WARP, other, BLOCK), 128, ARCH, anew)
    refuse_whole_blocks((WARP, other), 64, ARCH, anew)


def test_what_bodies_were_found_to_ask_for_is_kept() -> None:
    kept: dict[str, bytes] = {}

    def keep(key: str, make: Callable[[], bytes]) -> bytes:
        if key not in kept:
            kept[key] = make()
        return kept[key]

    for _ in range(2):
        refuse_whole_blocks((WARP, BLOCK), 128, ARCH, keep)
    assert list(kept.values()) == [b"no"]
