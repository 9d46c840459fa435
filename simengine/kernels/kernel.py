"""`Kernel`: one or several stage bodies fused into one launch, and what becomes of each field in it.

A field that a body of the kernel produces lives in the world's scratch (shared memory on the GPU) while later bodies
use it, and is copied out only where its argument is not null: the same compiled kernel serves `forward()`, which stores
everything, and `step()`, which stores what the next step needs. Fused and unfused kernels give the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from simengine.model.table import resolve
from simengine.physics.stage import Stage
from simengine.state.fields import ADDRESS_OF, CONTACT_PARAMETERS, FIELD, entry_shape, padded

_ALIGN = 4  # words, so that four neighbours can be read at once


class ScratchItem(NamedTuple):
    """A piece of a world's scratch: a field or a stage's working array, alive from one body to another."""

    name: str
    first: int
    last: int


class ScratchPlan(NamedTuple):
    """Where each scratch item starts, in words, and how many words a world needs."""

    offsets: dict[str, int]
    words: int


@dataclass(frozen=True)
class Kernel:
    """A launchable kernel.

    Attributes:
        name: name of the compiled function.
        stages: the bodies, in order.
        direct: produced fields that bodies write straight to memory; they must not be null at launch. The default, all
            of them, is what a single stage wants.
        preload: fields read by several bodies, of which the GPU keeps a copy in scratch.
        unit: "world"; "column" for the scans; "slice" of the pairs of a world; "island" or "large island" for solvers,
            whose fields are then those of one island; or "step" of a world, for a `StepKernel`.
        mixes: contacts may have parameters of their own, which the table of candidates then holds in the eyes of the
            bodies; so they may in all solvers of islands.
        wide: a whole block of threads works on a unit on the GPU.
        apart: it finds by itself where its world's contacts go, from the counts of all worlds of the shard, and waits
            for no scan; it does nothing where the arena lacks room for them.
        resident: blocks of 128 threads that a multiprocessor shall hold at once, which caps the registers of a thread.
        constants: names and values of constants that the sources define otherwise, or not at all.
    """

    name: str
    stages: tuple[Stage, ...]
    direct: frozenset[str] | None = None
    preload: frozenset[str] = frozenset()
    unit: str = "world"
    resident: int = 1
    mixes: bool = False
    wide: bool = False
    apart: bool = False
    constants: tuple[tuple[str, int], ...] = ()

    @property
    def on_islands(self) -> bool:
        """Whether the unit is an island of any size."""
        return self.unit in ("island", "large island")

    @cached_property
    def produced(self) -> tuple[str, ...]:
        """Fields that a body writes, in order."""
        return tuple(dict.fromkeys(name for stage in self.stages for name in stage.writes))

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """Fields read from memory and not changed by the kernel."""
        made = set(self.produced) | {name for stage in self.stages for name in stage.updates}
        names = [n for stage in self.stages for n in stage.reads if n not in made]
        return tuple(dict.fromkeys([*names, *(("counts",) if self.apart else ())]))

    @cached_property
    def updates(self) -> tuple[str, ...]:
        """Fields read and written in memory."""
        return tuple(dict.fromkeys(n for stage in self.stages for n in stage.updates if n not in self.produced))

    @cached_property
    def in_scratch(self) -> tuple[str, ...]:
        """Produced fields that live in scratch."""
        if self.direct is None:
            return ()
        return tuple(name for name in self.produced if name not in self.direct)

    @cached_property
    def addresses(self) -> tuple[str, ...]:
        """Address fields the arenas of this kernel need beside its own reads."""
        if self.unit not in ("world", "slice"):
            return ()
        used = {FIELD[n].space for n in (*self.reads, *self.produced, *self.updates, *self.parameters)}
        wanted = [
            name for space, name in ADDRESS_OF.items() if space in used and not (self.apart and space == "contact")
        ]
        return tuple(n for n in wanted if n not in self.reads)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Fields with the parameters of contacts; they may be null, all together."""
        return CONTACT_PARAMETERS if self.mixes or self.on_islands else ()

    @cached_property
    def island_scratch(self) -> tuple[str, ...]:
        """Working arrays of solvers that have a place in memory where the unit is an island."""
        own = {name for stage in self.stages for name, _ in stage.scratch}
        return ("island_hessian",) if self.on_islands and "hessian" in own else ()

    def stored_as(self, name: str) -> str:
        """The field in memory behind a field of the bodies: that of the islands where the unit is one."""
        if not self.on_islands or name in ("contact_cand", "qM_blocks", "qLD_blocks") or name.startswith("island_"):
            return name
        return "island_record" if name == "nefc" else f"island_{name}"

    @cached_property
    def scalars(self) -> tuple[str, ...]:
        """Integer launch arguments of the bodies; "world" is none, since every unit knows its own."""
        names = [name for stage in self.stages for name in stage.scalars if name != "world"]
        return tuple(dict.fromkeys([*names, *(("shard_size", "contact_room") if self.apart else ())]))

    @cached_property
    def scratch_items(self) -> tuple[ScratchItem, ...]:
        """Scratch fields and working arrays with their lifetimes."""
        last_reader = {n: i for i, stage in enumerate(self.stages) for n in stage.reads}
        items = [ScratchItem(name, 0, last_reader[name]) for name in self.reads if name in self.preload]
        for name in self.in_scratch:
            users = [i for i, stage in enumerate(self.stages) if name in stage.fields]
            items.append(ScratchItem(name, users[0], users[-1]))
        for i, stage in enumerate(self.stages):
            own = (name for name, _ in stage.scratch if f"island_{name}" not in self.island_scratch)
            items += [ScratchItem(f"{stage.name}_{name}", i, i) for name in own]
        return tuple(items)

    def copy_after(self, index: int) -> tuple[str, ...]:
        """Scratch fields whose value is final after body `index`, to be copied out there."""
        last_change = {
            name: max(i for i, s in enumerate(self.stages) if name in s.writes or name in s.updates)
            for name in self.in_scratch
        }
        return tuple(name for name in self.in_scratch if last_change[name] == index)

    def plan_scratch(self, sizes: Mapping[str, int], nrow: int, registers: bool) -> ScratchPlan:
        """Place the scratch items so that those alive together do not overlap.

        Args:
            sizes: sizes of the model.
            nrow: bound on the constraint rows of a world, for row fields held in scratch.
            registers: matrices of the size of nv are factored in registers, so no Hessian is needed.
        """
        shapes = {f"{s.name}_{name}": dims for s in self.stages for name, dims in s.scratch}
        extra = {"nvp": padded(sizes["nv"]), "nhessian": 0 if registers else sizes["nv"] ** 2}
        sized = []
        for item in self.scratch_items:
            if item.name in shapes:
                shape = resolve(shapes[item.name], {**sizes, **extra})
            else:
                shape = entry_shape(FIELD[item.name], sizes)
                if FIELD[item.name].space == "row":
                    shape = (nrow, *shape)
            sized.append((item, padded(max(1, _product(shape)))))
        return place_items(sized, {pair for stage in self.stages for pair in stage.in_place})


def place_items(sized: list[tuple[ScratchItem, int]], shared: Set[tuple[str, str]]) -> ScratchPlan:
    """Place items of so many words so that those alive together do not overlap, in few words.

    `shared` are pairs of which the second may take the words of the first where it is written in the body that reads
    the first last.
    """
    return min((_place(order, shared) for order in _orders(sized)), key=lambda plan: plan.words)


def _orders(sized: list[tuple[ScratchItem, int]]) -> Iterator[list[tuple[ScratchItem, int]]]:
    """Orders of placement worth trying: as bodies come, largest first, longest alive first."""
    yield sized
    yield sorted(sized, key=lambda entry: -entry[1])
    yield sorted(sized, key=lambda entry: (entry[0].first - entry[0].last, -entry[1]))


def _place(sized: list[tuple[ScratchItem, int]], shared: Set[tuple[str, str]]) -> ScratchPlan:
    placed: list[tuple[ScratchItem, int, int]] = []
    words = 0
    for item, length in sized:
        start = _first_fit(item, length, placed, shared)
        placed.append((item, start, length))
        words = max(words, start + length)
    return ScratchPlan({item.name: start for item, start, _ in placed}, padded(words))


def _handed_over(a: ScratchItem, b: ScratchItem, shared: Set[tuple[str, str]]) -> bool:
    """Whether a body may write one item over the other, word for word: the pair is declared and meets in that body."""
    return ((a.name, b.name) in shared and a.last == b.first) or ((b.name, a.name) in shared and b.last == a.first)


def _product(shape: tuple[int, ...]) -> int:
    result = 1
    for n in shape:
        result *= n
    return result


def _first_fit(
    item: ScratchItem, length: int, placed: list[tuple[ScratchItem, int, int]], shared: Set[tuple[str, str]]
) -> int:
    together = [entry for entry in placed if item.first <= entry[0].last and entry[0].first <= item.last]
    partners = [(start, size) for other, start, size in together if _handed_over(item, other, shared)]
    alive = [(start, size) for other, start, size in together if not _handed_over(item, other, shared)]
    for start, size in partners:
        # the same words or none: shifted against each other, one lane would write what another has not read yet
        if size == length and all(start + length <= s or s + n <= start for s, n in alive):
            return start
    alive = sorted(alive + partners)
    start = 0
    for other_start, size in alive:
        if start + length <= other_start:
            break
        start = max(start, other_start + size)
    return start
