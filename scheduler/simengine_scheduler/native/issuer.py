"""`Issuer`: the compiled issuer of `issuer.h`. Functions release the interpreter lock while they run."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .compiling import build

POLICIES = ("follow", "least_loaded", "round_robin")
OF_ISSUER = (
    *("issuer.h", "plans.h", "streams.h", "launcher.h", "launch_threads.h"),
    *("marks.h", "polling.h", "hazards.h", "driver_calls.h"),
)
"""Files of the issuer that others include."""

WORDS = 11  # that define a call: number, function, grid, block, shared memory, arguments, combination


class Functions(NamedTuple):
    """Addresses of the driver's functions, with the signatures of CUDA; 0 for those of graphs where there are none.

    The last four build graphs. Those before them return and set the context of a thread: only where they are there may
    several threads call the functions.
    """

    launch: int
    record: int
    wait: int
    query: int
    launch_graph: int = 0
    enable: int = 0
    get_context: int = 0
    set_context: int = 0
    create_graph: int = 0
    add_node: int = 0
    instantiate: int = 0
    destroy_graph: int = 0


class Outcome(IntEnum):
    """How issuing ended. FOREIGN: the next call has no function, so that the caller launches it."""

    DONE = 0
    FOREIGN = 1
    FAILED = 2


OUTCOMES = tuple(Outcome)
"""By their numbers, since this is found faster than by `Outcome(number)`."""


class State(NamedTuple):
    """Where an issuer is.

    Attributes:
        at: position in the run of the call that is issued, or that failed.
        handle: stream of that call.
        status: what the driver's function returned that failed.
        asked, needed: waits that hazards asked for, and those that were made.
        number: of that call.
    """

    at: int
    handle: int
    status: int
    asked: int
    needed: int
    number: int


_POINTER, _LONG, _INT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "issuer_make": (_POINTER, [_POINTER, _INT, _INT, _INT, _INT, _INT, _INT]),
    "issuer_free": (None, [_POINTER]),
    "issuer_set_conflicts": (None, [_POINTER, _POINTER, _LONG]),
    "issuer_add_combinations": (None, [_POINTER, _POINTER, _LONG]),
    "issuer_define": (None, [_POINTER, _POINTER, _LONG]),
    "issuer_forget": (None, [_POINTER]),
    "issuer_begin": (_INT, [_POINTER, _POINTER, _LONG, _POINTER, _LONG, _INT]),
    "issuer_join": (_INT, [_POINTER, _POINTER]),
    "issuer_will_await": (None, [_POINTER, _POINTER, _LONG]),
    "issuer_issue": (_INT, [_POINTER, _POINTER, _LONG, _POINTER]),
    "issuer_issued": (_INT, [_POINTER]),
    "issuer_complete": (_INT, [_POINTER, _LONG]),
    "issuer_ended": (_INT, [_POINTER, _POINTER, _POINTER, _LONG, _POINTER]),
    "issuer_drain": (_INT, [_POINTER]),
    "issuer_serial": (_INT, [_POINTER, _POINTER, _LONG, _POINTER, _LONG]),
    "issuer_state": (None, [_POINTER, _POINTER]),
    "issuer_log": (_LONG, [_POINTER, _POINTER]),
    "issuer_plan": (_POINTER, [_POINTER, _POINTER, _POINTER, _LONG, _POINTER]),
    "issuer_issue_plan": (_INT, [_POINTER, _POINTER, _POINTER]),
    "issuer_free_plan": (None, [_POINTER]),
    "issuer_check": (_LONG, [_POINTER, _POINTER, _LONG, _LONG, _POINTER, _POINTER, _LONG]),
    "pieces_make": (_POINTER, [_POINTER, _LONG, _LONG]),
    "pieces_free": (None, [_POINTER]),
    "pieces_begin": (None, [_POINTER]),
    "pieces_divide": (_LONG, [_POINTER, _POINTER, _POINTER, _LONG]),
    "pieces_divide_lists": (_LONG, [_POINTER, _POINTER, _POINTER, _LONG]),
    "pieces_issue": (_INT, [_POINTER, _POINTER]),
    "pieces_position": (_LONG, [_POINTER, _LONG]),
    "pieces_launched": (_LONG, [_POINTER]),
    "pieces_wanted": (_LONG, [_POINTER]),
    "pieces_first_wanted": (_LONG, [_POINTER, _POINTER, _POINTER]),
    "pieces_answer": (_INT, [_POINTER, _LONG]),
    "graphs_make": (_POINTER, [_POINTER, _POINTER]),
    "graphs_free": (None, [_POINTER]),
    "graphs_build": (_LONG, [_POINTER, _POINTER]),
    "pieces_drop": (None, [_POINTER, _INT]),
    "pieces_oldest": (_INT, [_POINTER]),
    "pieces_forget": (None, [_POINTER]),
    "programs_make": (_POINTER, [_POINTER]),
    "programs_free": (None, [_POINTER]),
    "programs_add": (_INT, [_POINTER, _POINTER, _LONG]),
    "programs_add_table": (_INT, [_POINTER]),
    "programs_set": (None, [_POINTER, _INT, _INT, _INT, _INT]),
    "programs_forget": (None, [_POINTER]),
    "programs_begin": (None, [_POINTER, _POINTER, _LONG, _LONG, _POINTER, _POINTER]),
    "programs_run": (_INT, [_POINTER, _POINTER, _LONG]),
    "programs_run_whole": (
        _INT,
        [*(_POINTER,) * 4, _LONG, _POINTER, _LONG, _POINTER, _POINTER, _LONG, _POINTER, _LONG],
    ),
    "programs_advance": (_INT, [_POINTER]),
    "programs_resume": (None, [_POINTER]),
    "nodes_switch": (_INT, [_LONG, _LONG, _POINTER, _LONG, _LONG]),
}


@lru_cache(maxsize=1)
def library() -> Any:
    """Load the compiled library, which is built at first use. Raises RuntimeError where it cannot be built."""
    folder = Path(__file__).parent
    of_pieces = ("pieces.h", "learning.h", "apart.h", "held.h", "graphs.h")
    names = ("issuer.cpp", *OF_ISSUER, *of_pieces, "programs.h")
    sources = [folder / name for name in names]
    loaded = ctypes.CDLL(str(build("issuer.so", sources)))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def _at(values: array[int]) -> int:
    return values.buffer_info()[0]


class Plan:
    """The plan of some lists.

    Attributes:
        lists: what was planned. Kept alive.
        calls, events: how many calls it issues, and how many events it needs.
        asked, needed: waits that hazards ask for, and those that are made.
    """

    def __init__(self, handle: int, lists: Sequence[Any], numbers: Sequence[int]) -> None:
        self.handle = handle
        self.lists = tuple(lists)
        self.calls, self.events, self.asked, self.needed = numbers
        self._free = library().issuer_free_plan

    def __del__(self) -> None:
        self._free(self.handle)


class Issuer:
    """Checks and issues calls by number. One thread at a time may use it.

    Args:
        functions: of the driver.
        streams: how many streams there are.
        window: most calls in flight.
        policy: one of `POLICIES`.
        polling: whether a call is issued once all are seen to have ended that it must come after, on an idle stream.
            Otherwise streams wait for each other.
        chains: with polling, whether a call is also issued behind the last call of a stream, if it must come after that
            one, and after nothing elsewhere that has not ended.
        threads: how many threads make the calls of the driver; 0: the one that uses the issuer.

    Raises:
        RuntimeError: there is no C++ compiler.
    """

    def __init__(
        self,
        functions: Functions,
        streams: int = 1,
        window: int = 32,
        policy: str = "follow",
        polling: bool = False,
        chains: bool = False,
        threads: int = 0,
    ) -> None:
        self._library = library()
        table = array("q", (*functions[:5], functions.get_context, functions.set_context))
        kind = POLICIES.index(policy)
        self._handle = self._library.issuer_make(_at(table), streams, window, kind, polling, chains, threads)
        self._done = array("q", [0])
        self._at_done = _at(self._done)
        self._state = array("q", [0] * 6)

    def __del__(self) -> None:
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            self._library.issuer_free(handle)

    def set_conflicts(self, words: array[int]) -> None:
        """Set what segments conflict with: number of the segment, how many others, and these. New segments are last."""
        self._library.issuer_set_conflicts(self._handle, _at(words), len(words))

    def add_combinations(self, words: array[int]) -> None:
        """Add combinations of segments, numbered from 0 on: how many are read and written, the ones, and the others."""
        self._library.issuer_add_combinations(self._handle, _at(words), len(words))

    def define(self, words: array[int]) -> None:
        """Define calls by `WORDS` words each. A call that was defined before gets another definition."""
        self._library.issuer_define(self._handle, _at(words), len(words) // WORDS)

    def forget(self) -> None:
        """Forget calls and combinations. Plans that were made before must not be issued."""
        self._library.issuer_forget(self._handle)

    def begin(self, handles: array[int], fork: int, events: array[int], number: int, logs: bool) -> Outcome:
        """Begin a run on streams, with the first `number` of some events.

        What the first stream holds comes before the run: the others wait for event `fork`, which is recorded there,
        before they are used.
        """
        code = self._library.issuer_begin(self._handle, _at(handles), fork, _at(events), number, logs)
        return OUTCOMES[code]

    def join(self, events: array[int]) -> Outcome:
        """Let the first stream wait for the others, with an event for each stream, once all calls have been issued."""
        return OUTCOMES[self._library.issuer_join(self._handle, _at(events))]

    def will_await(self, positions: array[int]) -> None:
        """Say which calls of the run will be awaited, by position, before they are issued."""
        self._library.issuer_will_await(self._handle, _at(positions), len(positions))

    def issue(self, numbers: array[int], done: int) -> tuple[Outcome, int]:
        """Issue calls from the one on that is at `done`. Returns how it ended, and how many calls were issued."""
        self._done[0] = done
        code = self._library.issuer_issue(self._handle, numbers.buffer_info()[0], len(numbers), self._at_done)
        return OUTCOMES[code], self._done[0]

    def issued(self) -> Outcome:
        """Record what follows a call that the caller has launched."""
        return OUTCOMES[self._library.issuer_issued(self._handle)]

    def drain(self) -> Outcome:
        """With polling, go on until all calls have been issued."""
        return OUTCOMES[self._library.issuer_drain(self._handle)]

    def ended(self, calls: array[int], pieces: int | None = None) -> array[int] | None:
        """Return a 1 for each call that has ended and a 0 for others, or None for an error.

        Args:
            calls: by position, or by place in the run if they were issued as pieces. They are in the order of issue.
            pieces: the handle of the pieces.
        """
        at, count = calls.buffer_info()
        out = array("B", bytes(count))
        answer = self._library.issuer_ended(self._handle, pieces, at, count, out.buffer_info()[0])
        return out if answer == 0 else None

    def complete(self, position: int) -> int:
        """Return 1 if a call of the run is known to be complete, or is found to be so, 0 if not, -1 for an error."""
        return int(self._library.issuer_complete(self._handle, position))

    def serial(self, numbers: array[int], done: int, handle: int) -> tuple[Outcome, int]:
        """Launch calls on one stream in order, as `issue` does."""
        self._done[0] = done
        code = self._library.issuer_serial(self._handle, _at(numbers), len(numbers), _at(self._done), handle)
        return OUTCOMES[code], self._done[0]

    def state(self) -> State:
        """Return where the issuer is."""
        self._library.issuer_state(self._handle, _at(self._state))
        return State(*self._state)

    def log(self) -> list[tuple[int, int, int]]:
        """Return what was done since the run began: kind (0 issue, 1 wait, 2 observation), position, and stream."""
        entries = _POINTER()
        size = self._library.issuer_log(self._handle, ctypes.byref(entries))
        words = ctypes.cast(entries, ctypes.POINTER(_LONG))[:size]
        return list(zip(words[::3], words[1::3], words[2::3], strict=True))

    def plan(self, lists: Sequence[Any], numbers: Sequence[array[int]]) -> Plan:
        """Plan lists that take turns, given the numbers of their calls, as if no call ended meanwhile."""
        addresses = array("q", [_at(own) for own in numbers])
        lengths = array("q", [len(own) for own in numbers])
        out = array("q", [0] * 4)
        handle = self._library.issuer_plan(self._handle, _at(addresses), _at(lengths), len(numbers), _at(out))
        return Plan(handle, lists, out)

    def issue_plan(self, plan: Plan, done: int) -> tuple[Outcome, int]:
        """Issue a plan from step `done` on, after `begin` with as many events as it needs."""
        self._done[0] = done
        code = self._library.issuer_issue_plan(self._handle, plan.handle, _at(self._done))
        return OUTCOMES[code], self._done[0]

    @property
    def handle(self) -> int:
        """Address of the issuer in compiled code."""
        return int(self._handle)

    def check(self, numbers: array[int], window: int) -> list[list[int]]:
        """Return for each call the positions of those that it must come after, in a window of so many calls.

        The window holds the call itself. The oldest call in it ends when the next one comes.
        """
        sizes = array("i", [0] * len(numbers))
        room = len(numbers) * min(window, len(numbers))
        found = np.zeros(max(1, room), np.int64)
        self._library.issuer_check(
            self._handle, _at(numbers), len(numbers), window, _at(sizes), found.ctypes.data, room
        )
        ends = np.cumsum(sizes)
        return [found[end - size : end].tolist() for end, size in zip(ends, sizes, strict=True)]

    def check_only(self, numbers: array[int], window: int) -> None:
        """Check calls as `check` does, and return nothing, so that only the check takes time."""
        self._library.issuer_check(self._handle, _at(numbers), len(numbers), window, None, None, 0)


def switch_nodes(function: int, graph: int, nodes: array[int], on: int) -> int:
    """Enable the first `on` of some nodes of an executable graph, by handles, and disable the others.

    Returns the driver's status.
    """
    return int(library().nodes_switch(function, graph, _at(nodes), on, len(nodes)))
