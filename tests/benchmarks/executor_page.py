"""What docs/executors.md and the CUDA backend say of `scheduler_h200.json` and `scheduler_large_h200.json`.

    python -m tests.benchmarks.executor_page FOLDER

writes the pages anew from the results of both names in a folder, and takes these as the committed ones. What the pages
say beside tables and figures has to be read afterwards.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import statistics
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.performance import lists

Row = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
PAGE, BACKEND = ROOT / "docs/executors.md", ROOT / "simengine/backends/cuda.py"
RESULTS = ("scheduler_h200", "scheduler_large_h200")
FIXED = tuple(f"{model}:emission=ahead" for model in lists.FIVE)
LARGE = {model: f"{model}:worlds=8192,emission=ahead" for model in lists.FIVE}
SYSTEMS = (
    ("ACS-SW", "streams:completion=polling", "1.80"),
    ("ACS-SW, waits on the GPU", "streams", ""),
    ("KeSCo", "streams:stream_policy=kesco", "1.28"),
    ("SET", "pipeline", "1.15 to 1.44"),
    ("ACS-HW", "device", "2.00"),
    ("cuSync", "device", "1.06 to 1.22"),
    ("CUDA graph built anew", "graph", "0.85"),
    ("CUDA graph kept", "graph-cached", ""),
    ("Opara", "graph-cached:stream_policy=opara", "1.29"),
    ("the fastest of three", "auto", ""),
)
COUNTED = tuple(one for one in lists.EXECUTORS if one != "serial" and not one.startswith("device"))
OF_AN_OLDER_CORE = (
    "In this section and the next, `streams` launched every call by itself, as with `pieces=False`.",
    "`device` had its window.",
)
WORDS = ("none", "one", "two", "three", "four", "five")


def rows_of(folder: Path) -> list[Row]:
    """The rows of both results."""
    files = (folder / f"{name}.json" for name in RESULTS)
    return [row for file in files for row in json.loads(file.read_text(encoding="utf-8"))["rows"]]


class Found:
    """Times of the rows."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self._us = {(row["workload"], row["executor"]): float(row["us_per_step"]) for row in rows}

    def us(self, workload: str, executor: str) -> float:
        """Microseconds a step."""
        return self._us[workload, executor]

    def over(self, other: str, executor: str, workload: str) -> float:
        """How many times as fast an executor is as another one."""
        return self.us(workload, other) / self.us(workload, executor)

    def of(self, workload: str) -> dict[str, float]:
        """Microseconds a step, by executor."""
        return {executor: us for (name, executor), us in self._us.items() if name == workload}

    def ran(self, executor: str) -> list[str]:
        """What an executor ran."""
        return [name for name, other in self._us if other == executor]


def shown(ratios: Sequence[float]) -> str:
    """Mean, least and most of several ratios."""
    return f"{statistics.fmean(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def reach(values: Iterable[float], digits: int) -> str:
    """The least and the most, or one of them if they are shown alike."""
    values = sorted(values)
    low, high = f"{values[0]:.{digits}f}", f"{values[-1]:.{digits}f}"
    return low if low == high else f"{low} to {high}"


def line(cells: Iterable[str]) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")


def tables(found: Found) -> list[list[str]]:
    """Lines of the tables of the page, without headings."""
    fixed, counted, chose, split = list[str](), list[str](), list[str](), list[str]()
    for system, executor, published in SYSTEMS:
        base = "device:tiled=false" if system == "cuSync" else "serial"
        five = [found.over(base, executor, name) for name in FIXED]
        single = [found.over(base, executor, name) for name in ("mixed:emission=ahead", "wired")]
        fixed.append(line([system, f"`{executor}`", published, shown(five), *(f"{one:.2f}" for one in single)]))
    for executor in COUNTED:
        five = [found.over("serial", executor, model) for model in lists.FIVE]
        single = [found.over("serial", executor, name) for name in ("mixed", "population", "pile")]
        counted.append(line([f"`{executor}`", shown(five), *(f"{one:.2f}" for one in single)]))
    of = lists.by_case(found.rows)
    for name in lists.COUNTED:
        kept = of.get((f"{name}:emission=ahead", "graph-cached"))
        over_fixed = f"{lists.over(kept, of[name, 'auto']):.2f}" if kept else ""
        same = f"{found.over('graph-cached', 'auto', name):.2f}"
        chose.append(line([name, f"`{lists.chosen(of[name, 'auto'])}`", same, over_fixed]))
    for model in lists.FIVE:
        four = f"{model}:shards=4"
        ratios = found.over("serial", "auto", model), found.over("serial", "auto", four), across(found, model)
        split.append(line([model, *(f"{one:.2f}" for one in ratios)]))
    return [fixed, counted, chose, split]


def across(found: Found, model: str) -> float:
    """How many times as fast `auto` on four shards is as `serial` on one."""
    return found.us(model, "serial") / found.us(f"{model}:shards=4", "auto")


def _of_five(held: Sequence[bool]) -> str:
    return f"{'each' if all(held) else WORDS[sum(held)]} of the five models"


def _floor(values: Iterable[float]) -> str:
    return f"{math.floor(200 * min(values)) / 200:.3f}".removesuffix("0")


def sentences(found: Found) -> list[str]:
    """What the page says."""
    over, us, five = found.over, found.us, lists.FIVE
    others = {name: min(t for e, t in found.of(name).items() if e != "auto") for name in FIXED}
    worst = max(us(name, "graph-cached") / others[name] for name in FIXED)
    slower = {e: [over("serial", e, name) < 1 for name in FIXED] for e in ("streams:completion=polling", "graph")}
    device = [over("graph-cached", "device", name) < 1 for name in found.ran("device")]
    best = []
    for model in (*five, "mixed"):
        same = [name for name in (model, f"{model}:emission=ahead", f"{model}:shards=4") if found.of(name)]
        best.append(min(us(name, "serial") for name in same) / us(f"{model}:emission=whole", "graph-cached"))
    polling = {m: us(name, "streams:completion=polling") / us(name, "serial") for m, name in LARGE.items()}
    tried = {"serial": [name for name in found.ran("auto") if "shards" not in name], "graph-cached": found.ran("auto")}
    least = {other: _floor(over(other, "auto", name) for name in names) for other, names in tried.items()}
    anew = [over("graph", "auto", name) for name in FIXED], [over("graph", "auto", model) for model in five]
    whole = [us(f"{m}:emission=ahead", "graph") / us(f"{m}:emission=whole", "graph-cached") for m in five]
    auto = [str(lists.chosen(lists.by_case(found.rows)[name, "auto"])) for name in lists.COUNTED]
    most = max(sorted(set(auto)), key=auto.count)
    kept = [name for name in lists.COUNTED if over("serial", "graph-cached", name) > 1]
    covered = lists.coverage(found.rows)
    return [
        f"kept graphs are within {math.ceil(100 * worst - 100)} % of the fastest executor on each of the five lists",
        f"kept graphs and `pipeline` are {over('serial', 'graph-cached', 'wired'):.1f} and "
        f"{over('serial', 'pipeline', 'wired'):.1f} times as fast as `serial`",
        f"polling is slower than `serial` for {_of_five(slower['streams:completion=polling'])}, and graphs that are "
        f"built anew for {_of_five(slower['graph'])}",
        f"`device` is slower than kept graphs on {'each' if all(device) else sum(device)} of the {len(device)} lists "
        f"that it ran",
        f"{reach((r['parallelism'] for r in found.rows if r['workload'] in FIXED), 1)} kernels that could run at once",
        f"{statistics.fmean(best[:-1]):.2f} times as fast in the mean of the four models that have them and grasp",
        f"{best[-1]:.2f} times for the mixed batch",
        f"polling then takes {reach(polling.values(), 2)} times as long as `serial`, and `device` "
        f"{reach((over('device', 'serial', name) for name in LARGE.values()), 2)} times",
        f"kept graphs are faster than `serial` on {len(kept)} of these {len(lists.COUNTED)} lists",
        f"`auto` chose `{most}` on {auto.count(most)} of them",
        f"`auto` on four shards is slower than `serial` on one for {_of_five([across(found, m) < 1 for m in five])}",
        f"`auto` is at least {least['serial']} times as fast as `serial`",
        f"over all lists at least {least['graph-cached']} times as fast as kept graphs",
        f"it is {reach(anew[0], 1)} on fixed lists of the five models, mean {statistics.fmean(anew[0]):.1f}",
        f"lists that wait for counts {reach(anew[1], 1)}, mean {statistics.fmean(anew[1]):.1f}",
        f"Whole steps over such graphs of the fixed list are {reach(whole, 1)}, mean {statistics.fmean(whole):.1f}",
        f"ran {covered['lists']} lists on one H200, three repeats each",
        f"`device` ran {covered['device']}: the fixed lists and the population",
    ]


def reasons(found: Found) -> list[str]:
    """What the CUDA backend says of the executors that it chooses."""
    over, us, five = found.over, found.us, lists.FIVE
    others = {name: min(t for e, t in found.of(name).items() if e != "auto") for name in FIXED}
    worst = max(us(name, "graph-cached") / others[name] for name in FIXED)
    halves = [us(f"{m}:emission=whole", "graph-cached") / us(f"{m}:emission=ahead", "graph-cached") for m in five]
    halves.remove(max(halves))
    counted = [over("graph-cached", "streams", model) for model in five]
    slower, faster = [one for one in counted if one >= 1], [one for one in counted if one < 1]
    return [
        f"by more than {math.ceil(100 * worst - 100)} %, on any of five models",
        f"took {reach(halves, 1)} of that on four of them",
        f"took {reach(slower, 1)} times as long on {WORDS[len(slower)]} of five models on an H200, and "
        f"{reach(faster, 1)} times on the others"
        if faster
        else f"took {reach(slower, 1)} times as long on each of five models on an H200",
    ]


def pattern(sentence: str) -> re.Pattern[str]:
    """Finds a sentence whose words stand on several lines, maybe of one string in Python each."""
    return re.compile(r'(?:"\s*"|\s)+'.join(re.escape(word) for word in sentence.split()))


def _wrapped(text: str, place: int) -> str:
    """The text, with the paragraph at a place in lines of up to 120 characters."""
    begin, end = text.rfind("\n\n", 0, place) + 2, text.find("\n\n", place)
    return text[:begin] + textwrap.fill(" ".join(text[begin:end].split()), 120, break_on_hyphens=False) + text[end:]


def renew(old: Found, new: Found) -> None:
    """Write the pages from other results."""
    page = PAGE.read_text(encoding="utf-8")
    for sentence in OF_AN_OLDER_CORE:
        if match := pattern(sentence).search(page):
            page = _wrapped(page[: match.start()] + page[match.end() :], match.start())
    for before, after in zip(tables(old), tables(new), strict=True):
        assert "\n".join(before) in page, before[0]
        page = page.replace("\n".join(before), "\n".join(after), 1)
    for sentence, other in zip(sentences(old), sentences(new), strict=True):
        match = pattern(sentence).search(page)
        assert match, sentence
        page = _wrapped(page[: match.start()] + other + page[match.end() :], match.start())
    PAGE.write_text(page, encoding="utf-8")
    source = BACKEND.read_text(encoding="utf-8")
    for sentence, other in zip(reasons(old), reasons(new), strict=True):
        match = pattern(sentence).search(source)
        assert match, sentence
        source = source[: match.start()] + other + source[match.end() :]
    BACKEND.write_text(source, encoding="utf-8")


if __name__ == "__main__":
    folder, committed = Path(sys.argv[1]), ROOT / "benchmarks/results"
    renew(Found(rows_of(committed)), Found(rows_of(folder)))
    for name in RESULTS:
        shutil.copy(folder / f"{name}.json", committed)
