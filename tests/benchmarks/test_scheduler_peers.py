"""Recorded calls for other schedulers: what they are told of orders every two calls with a hazard, and no others."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.scheduler_peers import recording
from benchmarks.scheduler_peers.libraries import SYSTEMS
from benchmarks.scheduler_peers.recording import CALL, Noted, Program, noted, program_of
from simengine_scheduler import KernelCall
from simengine_scheduler.core.hazards import conflict
from simengine_scheduler.core.segments import Segments
from simengine_scheduler.launch.arguments import BufferSet, PackedArguments
from tests.scheduler.device.programs import random_program

HERE = Path(recording.__file__).parent


class Launch:
    """A launch of a function with some arguments."""

    def __init__(self, *args: Any) -> None:
        self._packed = PackedArguments(args, BufferSet())
        self.arguments = self._packed.args

    def issue(self, stream: int) -> None:
        """Nothing is run."""

    def node(self) -> tuple[int, tuple[int, int, int], tuple[int, int, int], int, int]:
        return 7, (3, 1, 1), (32, 2, 1), 64, self._packed.current()[3]


def as_noted(calls: list[KernelCall]) -> list[Noted]:
    return [Noted(call, 7, (1, 1, 1), (32, 1, 1), 0, (number,)) for number, call in enumerate(calls)]


@given(seed=st.integers(0, 2**32))
def test_tokens_order_every_two_calls_with_a_hazard_and_no_others(seed: int) -> None:
    program = random_program(seed, length=12)
    calls, conflicts = program.calls, program.segments.conflicts
    tokens, count = recording._tokens(as_noted(calls), conflicts)
    assert all(0 <= token < 2 * count for own in tokens for token in own)
    for later, b in enumerate(calls):
        for earlier, a in enumerate(calls[:later]):
            shared = any(x // 2 == y // 2 and (x | y) & 1 for x in tokens[earlier] for y in tokens[later])
            assert shared == conflict(a, b, conflicts)


def test_parts_of_a_buffer_are_not_one_thing() -> None:
    segments = Segments()
    whole, *parts = [segments.intern("x", partition=part) for part in (None, ("size", 0), ("size", 1))]
    calls = [
        *(KernelCall(f"part {part}", Launch(), (), (part,)) for part in parts),
        KernelCall("all", Launch(), (whole,), ()),
    ]
    first, second, last = (set(own) for own in recording._tokens(as_noted(calls), segments.conflicts)[0])
    assert not {token // 2 for token in first} & {token // 2 for token in second}
    assert {token // 2 for token in last} == {token // 2 for token in first | second}


def test_a_call_is_noted_as_it_is_issued() -> None:
    call = KernelCall("call", Launch(5, np.float32(2.0), None), (), ())
    found = noted(call)
    assert (found.function, found.grid, found.block, found.shared) == (7, (3, 1, 1), (32, 2, 1), 64)
    assert found.arguments == (5, int(np.float32(2.0).view(np.uint32)), 0)
    with pytest.raises(ValueError, match=r"call 'call' takes a structure"):
        noted(KernelCall("call", Launch(bytes(24), 1), (), ()))


def test_programs_have_steps_of_batches_of_calls() -> None:
    segments = Segments()
    a, b = segments.intern("a"), segments.intern("b")
    calls = as_noted([KernelCall("a", Launch(), (), (a,)), KernelCall("b", Launch(), (), (b,))])
    both = as_noted([KernelCall("ab", Launch(), (a,), (b,)), KernelCall("again", Launch(), (b,), (a,))])
    program = program_of([[calls, both[:1]], [both]], segments, lambda function: 100 + function)
    rows, waits, _, batches, steps, words = program.arrays
    assert batches.tolist() == [(0, 2), (2, 1), (3, 2)]
    assert steps.tolist() == [0, 2, 3]
    assert rows["num_waits"].tolist() == [0, 0, 0, 0, 1]
    assert waits[rows["first_wait"][4]] == 0
    assert set(rows["kernel"].tolist()) == {107}
    assert [words[(at - words.ctypes.data) // 8] for at in rows["arguments"].tolist()] == [0, 1, 0, 0, 1]
    assert program.calls == rows.ctypes.data


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_structures_are_those_of_the_header(tmp_path: Path) -> None:
    (tmp_path / "cuda.h").write_text("typedef void* CUfunction;\n")
    fields = ", ".join(f"offsetof(Call, {name})" for name in CALL.names or ())
    (tmp_path / "sizes.cpp").write_text(
        f'#include <cstddef>\n#include "calls.h"\n'
        f'extern "C" const size_t sizes[] = {{sizeof(Call), sizeof(Batch), sizeof(Program), {fields}}};\n'
    )
    library = tmp_path / "sizes.so"
    includes = [f"-I{tmp_path}", f"-I{HERE}"]
    subprocess.run(["g++", "-shared", "-fPIC", *includes, str(tmp_path / "sizes.cpp"), "-o", str(library)], check=True)
    found = (ctypes.c_size_t * (3 + len(CALL.names or ()))).in_dll(ctypes.CDLL(str(library)), "sizes")
    wanted = [CALL.itemsize, recording.BATCH.itemsize, ctypes.sizeof(Program)]
    assert list(found) == [*wanted, *(CALL.fields[name][1] for name in CALL.names or ())]  # type: ignore[index]


def test_every_system_is_a_function_of_its_source() -> None:
    for library, function in SYSTEMS.values():
        source = next(HERE.glob(f"{library}.c*")).read_text()
        assert f"SYSTEM {function}(" in source
