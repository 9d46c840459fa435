"""Statements about executors, in the CUDA backend and on the page on executors, agree with the committed results."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from benchmarks.performance import lists
from benchmarks.performance.results import scheduler_rows
from simengine.backends.cuda import _MEASURED
from tests.benchmarks import later_lists, varying_lists

ROOT = Path(__file__).resolve().parents[2]
ROWS = scheduler_rows()
MODELS = lists.FIVE
COUNTED = lists.COUNTED
FIXED = [f"{model}:emission=ahead" for model in MODELS]
WINDOWS = "varying_lists_window_h100.json"
PAGE = (ROOT / "docs" / "executors.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())


def section(title: str) -> str:
    """The text of the page under a heading, up to the next one."""
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def cells_of(title: str, first: str = "") -> list[list[str]]:
    """Rows of the tables in a section whose first cell starts with `first`, without headings."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    headings = {number - 1 for number, row in enumerate(rows) if set(row[0]) == {"-"}}
    body = [row for number, row in enumerate(rows) if number not in headings and set(row[0]) != {"-"}]
    return [row for row in body if row[0].startswith(first)]


def times(workload: str) -> dict[str, float]:
    """Microseconds a step, by executor."""
    return {row["executor"]: row["us_per_step"] for row in ROWS if row["workload"] == workload}


def over(other: str, executor: str, workload: str) -> float:
    """How many times as fast an executor is as another one."""
    return times(workload)[other] / times(workload)[executor]


def shown(ratios: Sequence[float]) -> str:
    """Mean, least and most of several ratios, as the page has them."""
    return f"{statistics.fmean(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def says(text: str) -> None:
    assert text in TEXT, f"docs/executors.md does not say {text!r}"


def reach(values: Iterable[float], digits: int) -> str:
    values = list(values)
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def test_cached_graphs_are_within_4_percent_of_the_fastest_for_steps_ahead_of_counts() -> None:
    assert "of eleven executors" in _MEASURED["graph-cached"]
    says("kept graphs are within 4 % of the fastest executor on each of the five lists")
    for workload in FIXED:
        measured = times(workload)
        del measured["auto"]  # is one of the others
        assert len(measured) == 11
        assert measured["graph-cached"] <= 1.04 * min(measured.values())


def test_whole_steps_of_few_worlds_take_half_of_that_but_for_one_model() -> None:
    ratios = [
        times(f"{model}:emission=whole")["graph-cached"] / times(f"{model}:emission=ahead")["graph-cached"]
        for model in MODELS
    ]
    assert "took 0.5 to 0.6 of that on four of them" in _MEASURED["graph-cached"]
    assert sum(0.45 <= ratio <= 0.65 for ratio in ratios) == 4


def test_cached_graphs_take_longer_than_streams_for_steps_that_wait_for_counts() -> None:
    ratios = sorted(times(model)["graph-cached"] / times(model)["streams"] for model in MODELS)
    assert "1.3 to 2.9 times as long on three of five models" in _MEASURED["streams"]
    assert "0.8 times on the others" in _MEASURED["streams"]
    assert ratios == pytest.approx([0.79, 0.83, 1.34, 1.75, 2.87], abs=0.006)


def test_ratios_to_serial_on_fixed_lists() -> None:
    rows = cells_of("Fixed lists")
    assert len(rows) == 10
    for system, executor, _, *found in rows:
        base = "device:tiled=false" if system == "cuSync" else "serial"
        ratios = [[over(base, executor.strip("`"), name) for name in FIXED]]
        single = [over(base, executor.strip("`"), name) for name in ("mixed:emission=ahead", "wired")]
        assert found == [shown(ratios[0]), *(f"{ratio:.2f}" for ratio in single)], executor


def test_published_ratios() -> None:
    published = {row["system"]: row["says"] for row in _published()}
    for system, _, figure, *_ in cells_of("Fixed lists"):
        if figure and system != "ACS-SW":
            assert figure in published[system]
    of_acs = next(row["over_serial"] for row in _published() if row["system"] == "ACS-SW")
    assert f"{statistics.fmean(of_acs.values()):.2f}" == cells_of("Fixed lists", "ACS-SW")[0][2]


def test_ratios_to_serial_on_lists_that_wait_for_counts() -> None:
    rows = cells_of("Lists that wait for counts", "`")
    ran_all = {executor for executor in times("ant") if executor != "serial"}
    assert {row[0].strip("`") for row in rows} == ran_all
    for executor, *found in rows:
        name = executor.strip("`")
        ratios = [over("serial", name, model) for model in MODELS]
        single = [over("serial", name, workload) for workload in ("mixed", "population", "pile")]
        assert found == [shown(ratios), *(f"{ratio:.2f}" for ratio in single)], executor


def test_what_auto_chose_and_gained_over_kept_graphs() -> None:
    found = lists.by_case(ROWS)
    rows = [row for row in cells_of("Lists that wait for counts") if not row[0].startswith("`")]
    assert [row[0] for row in rows] == list(COUNTED)
    for name, chosen, same, fixed in rows:
        auto = found[name, "auto"]
        kept_fixed = found.get((f"{name}:emission=ahead", "graph-cached"))
        assert chosen == f"`{lists.chosen(auto)}`"
        assert same == f"{over('graph-cached', 'auto', name):.2f}"
        assert fixed == (f"{lists.over(kept_fixed, auto):.2f}" if kept_fixed else "")


def test_splitting_a_batch() -> None:
    rows = cells_of("Splitting a batch")
    assert [row[0] for row in rows] == list(MODELS)
    for name, *ratios in rows:
        split = f"{name}:shards=4"
        across = times(name)["serial"] / times(split)["auto"]
        wanted = (over("serial", "auto", name), over("serial", "auto", split), across)
        assert ratios == [f"{ratio:.2f}" for ratio in wanted]
        assert across < 1  # "never makes up"


def test_auto_is_never_far_behind() -> None:
    tried = {row["workload"] for row in ROWS if row["executor"] == "auto"}
    assert len(tried) >= 20
    says("at least 0.95 times as fast as kept graphs")
    says("at least 0.985 times as fast as `serial`")
    assert all(over("graph-cached", "auto", workload) >= 0.95 for workload in tried)
    assert all(over("serial", "auto", workload) >= 0.985 for workload in tried if "shards" not in workload)


def test_who_loses_on_fixed_lists() -> None:
    for executor in ("streams:completion=polling", "graph"):
        assert all(over("serial", executor, name) < 1 for name in FIXED)
    ran = {row["workload"] for row in ROWS if row["executor"] == "device"}
    says(f"slower than kept graphs on each of the {len(ran)} lists that it ran")
    assert all(over("graph-cached", "device", name) < 1 for name in ran)
    for executor in ("graph-cached", "pipeline"):
        assert over("serial", executor, "wired") == pytest.approx(4, abs=0.06)


def test_large_batches() -> None:
    large = {model: f"{model}:worlds=8192,emission=ahead" for model in MODELS}
    polling = {m: over("streams:completion=polling", "serial", name) for m, name in large.items()}
    grasp = polling.pop("grasp")
    says(f"polling then takes {reach(polling.values(), 2)} of the time of `serial` for all models but grasp")
    says(f"grasp ({grasp:.2f}), and `device`")
    says(f"`device` {reach((over('device', 'serial', name) for name in large.values()), 2)} times as long as `serial`")


def test_what_could_run_at_once() -> None:
    parallelism = [row["parallelism"] for row in ROWS if row["workload"] in FIXED]
    says(f"{reach(parallelism, 1)} kernels that could run at once")


def test_whole_steps_over_the_best_serial() -> None:
    gained = []
    for model in (*MODELS, "mixed"):
        workloads = [name for name in (model, f"{model}:emission=ahead", f"{model}:shards=4") if times(name)]
        best = min(times(name)["serial"] for name in workloads)
        gained.append(best / times(f"{model}:emission=whole")["graph-cached"])
    says(f"{statistics.fmean(gained[:-1]):.2f} times as fast in the mean of the four models that have them and grasp")
    says(f"{gained[-1]:.2f} times for the mixed batch")
    assert [model for model in MODELS if lists.same_list(ROWS, model)] == ["grasp"]


def test_over_graphs_that_are_built_anew() -> None:
    fixed = [over("graph", "auto", name) for name in FIXED]
    counted = [over("graph", "auto", model) for model in MODELS]
    whole = [
        times(f"{model}:emission=ahead")["graph"] / times(f"{model}:emission=whole")["graph-cached"] for model in MODELS
    ]
    says(f"it is {reach(fixed, 1)} on fixed lists of the five models, mean {statistics.fmean(fixed):.1f}")
    says(f"lists that wait for counts {reach(counted, 1)}, mean {statistics.fmean(counted):.1f}")
    says(f"Whole steps over such graphs of the fixed list are {reach(whole, 1)}, mean {statistics.fmean(whole):.1f}")


def test_hazard_checks() -> None:
    result = json.loads((ROOT / "benchmarks/results/hazard_check_h200_host.json").read_text(encoding="utf-8"))
    us = {row["list"]: f"{row['median_ns'] / 1e3:.1f} us" for row in result["lists"]}
    size, window = result["segments_per_call"], result["window"]
    says(f"a call with {size} segments against a window of {window} takes {us['worlds']}")
    says(f"{us['random']} on random combinations, and {us['fresh']} where none comes twice")
    on_device = [row for row in ROWS if row["executor"].startswith("device")]
    compared = [1e6 * row["counters"]["compare_seconds"] / row["counters"]["calls"] for row in on_device]
    intake = reach((row["check_us"] for row in on_device), 1)
    says(f"takes in a call in {intake} us, of which the comparison itself is {reach(compared, 2)} us")


def test_compiled_issue() -> None:
    result = json.loads((ROOT / "benchmarks/results/issue_costs_epyc_2_cores.json").read_text(encoding="utf-8"))
    again = reach((row["again_ns"] / 1e3 for row in result["checks"]), 3)
    first = reach((row["first_ns"] / 1e3 for row in result["checks"]), 2)
    says(f"a window of 32 in {again} us, and in {first} us when the call is new to it")
    us = {(row["executor"], row["list"], row["compiled"]): f"{row['median_us']:.2f} us" for row in result["issue"]}

    def pair(executor: str, kind: str) -> tuple[str, str]:
        return us[executor, kind, True], us[executor, kind, False]

    compiled, python = pair("streams", "emitted")
    says(f"takes {compiled} a call on `streams`, emitters and waits included, where Python takes {python}")
    for kind, words in (
        ("fixed", "if random ones of 64 fixed lists pause"),
        ("counted", "if counts choose the calls"),
        ("numbers", "if a number among the arguments of each call changes before it is yielded"),
        ("fresh", "if no combination of segments came before"),
    ):
        says("{} instead of {} ".format(*pair("streams", kind)) + words)
    says("never seen take {} instead of {}".format(*pair("streams", "scalars")))
    rows = (row for row in result["issue"] if row["executor"] == "streams" and "making_us" in row and row["compiled"])
    of = {row["list"]: row for row in rows}
    making = {kind: f"{row['making_us']:.2f} us" for kind, row in of.items()}
    adds = of["made"]["median_us"] - of["made"]["making_us"]
    says(f"take {making['made']} to make one, segments included, and the executor adds {adds:.2f} us")
    says(f"takes {making['kernels']} to make with `Calls.kernel`, and {making['forms']} with a form of the kernel")
    says("compiled code takes {} a known call where Python takes {}".format(*pair("serial", "emitted")))
    says("{} instead of {} a call that was never seen".format(*pair("serial", "scalars")))
    says("{} instead of {} if counts choose the calls".format(*pair("serial", "counted")))


def _rows(name: str) -> list[varying_lists.Row]:
    rows: list[varying_lists.Row] = json.loads((ROOT / "benchmarks/results" / name).read_text(encoding="utf-8"))["rows"]
    return rows


def test_what_pieces_cost() -> None:
    took = reach((row["ns"] / 1e3 for row in _rows("piece_costs_epyc_2_cores.json")), 2)
    says(f"To divide calls into pieces, of which each is one launch, takes {took} us")


def test_what_windows_gain() -> None:
    rows = _rows(WINDOWS)
    assert all(row["legal"] and row["equal"] and not row["error"] for row in rows)
    assert "\n".join(varying_lists.pieces_table(rows)) in PAGE
    for sentence in varying_lists.pieces_sentences(rows):
        says(sentence)


def test_lists_that_vary_on_the_host() -> None:
    result = json.loads((ROOT / "benchmarks/results/varying_lists_host_epyc_2_cores.json").read_text(encoding="utf-8"))
    rows = result["rows"]
    assert all(row["legal"] and row["equal"] and not row["error"] and row["bound"] for row in rows)
    us = {(row["workload"], row["executor"]): row["us_per_step"] for row in rows}
    names = {name for name, _ in us}
    gains = reach((us[name, "serial"] / us[name, "threads"] for name in names), 2)
    shares = reach((us[name, "auto"] / min(us[name, "serial"], us[name, "threads"]) for name in names), 2)
    says(f"{len(names)} of these lists in either form were run: `threads` is {gains} times as fast as `serial`")
    says(f"`auto` takes {shares} times as long as the faster of the two")
    says(f"spread by up to {100 * max(row['spread'] for row in rows):.0f} %")


@pytest.mark.parametrize("name", ["varying_lists_h200.json", "varying_lists_compiled_h200.json"])
def test_lists_that_vary_on_a_gpu(name: str) -> None:
    rows = _rows(name)
    assert all(row["legal"] and row["equal"] and not row["error"] and row["bound"] for row in rows)
    assert "\n".join(varying_lists.table(rows)) in PAGE
    for sentence in varying_lists.sentences(rows):
        says(sentence)


def test_what_a_window_could_gain_on_lists_by_stages() -> None:
    rows = _rows(WINDOWS)
    assert "\n".join(varying_lists.stages_table(rows)) in PAGE
    found = varying_lists.by_stages(rows)
    mean = statistics.fmean(of[2] for of in found.values())
    says(f"The mean of `serial` over the bound is {mean:.2f}")
    below = [model for model, of in found.items() if of[2] < 1.8]
    says(f"1.8 times is beyond the bound of {', '.join(below[:-1])} and {below[-1]}")
    wired = {row["executor"]: row for row in rows if row["workload"] == "wired"}
    chain, graphs = wired["serial"]["bound"]["chain_us"], wired["graph-cached"]["us_per_step"]
    says(f"the chain of `wired` is {chain:.0f} us, and kept graphs take {graphs:.0f}")
    guide = " ".join((ROOT / "docs/scheduler.md").read_text(encoding="utf-8").split())
    bound, polling, chains, events = (varying_lists.reach_of(rows, column) for column in (2, 3, 4, 5))
    assert f"at most {bound} times as fast" in guide
    assert f"{events} times with events" in guide
    assert f"{polling} times with polling" in guide
    assert f"{chains} times with chains of polled calls" in guide


def test_robots_by_counts_and_generations_on_a_gpu() -> None:
    rows = json.loads((ROOT / "benchmarks/results/robots_counted_h200.json").read_text(encoding="utf-8"))["rows"]
    assert all(row["legal"] and row["equal"] and not row["error"] and row["bound"] for row in rows)
    assert "\n".join(varying_lists.table(rows)) in PAGE
    says(f"five times of an executor spread by up to {100 * max(row['spread'] for row in rows):.0f} %")
    shares = []
    for of in varying_lists.by_list(rows).values():
        fastest = min(row["us_per_step"] for name, row in of.items() if name != "auto")
        shares.append(of["auto"]["us_per_step"] / fastest)
    says(f"There `auto` takes {reach(shares, 2)} times as long as the fastest of the others")


def test_whole_steps_of_robots_on_a_gpu() -> None:
    rows = json.loads((ROOT / "benchmarks/results/robots_whole_h200.json").read_text(encoding="utf-8"))["rows"]
    assert all(row["legal"] and row["equal"] and not row["error"] and row["bound"] for row in rows)
    assert "\n".join(varying_lists.table(rows)) in PAGE
    says(f"single times of kept graphs on `robots` spread by {100 * max(row['spread'] for row in rows):.0f} %")
    slow = varying_lists.by_list(rows)["asynchronous:worlds=16,emission=whole"]["device"]
    says(f"`device` prepared each such run anew, and took {slow['us_per_step']:,.0f} us")


def test_lists_on_hosts_with_more_cores() -> None:
    rows = _rows("varying_lists_16_cores_h200.json")
    assert all(row["legal"] and row["equal"] and not row["error"] and row["bound"] for row in rows)
    assert "\n".join(varying_lists.pieces_table(rows)) in PAGE
    for sentence in later_lists.sentences(rows):
        assert sentence.lower() in TEXT.lower(), f"docs/executors.md does not say {sentence!r}"
    again = _rows("auto_again_h200.json")
    assert all(row["legal"] and row["equal"] and not row["error"] for row in again)
    for sentence in later_lists.again_sentences(again):
        says(sentence)
    ahead = _rows("stages_ahead_h200.json")
    assert all(row["legal"] and row["equal"] and not row["error"] for row in ahead)
    assert "\n".join(later_lists.ahead_table(ahead)) in PAGE
    for sentence in later_lists.ahead_sentences(ahead):
        says(sentence)
    driver = _rows("driver_time_h200.json")
    assert "\n".join(later_lists.driver_table(driver)) in PAGE
    for sentence in later_lists.driver_sentences(driver):
        says(sentence)
    says(later_lists.training_sentence(_rows("mixed_training_8_cores_h200.json")))
    threads = _rows("launch_threads_h200.json")
    assert all(row["good"] for row in threads)
    assert "\n".join(later_lists.threads_table(threads)) in PAGE
    training = _rows("mixed_training_16_cores_h200.json")
    assert len({row["bits"] for row in training}) == 1
    for sentence in later_lists.later_training_sentences(training):
        says(sentence)
    model = " ".join((ROOT / "docs/simulated.md").read_text(encoding="utf-8").split())
    assert later_lists.modelled_sentence(ahead, _rows("gpu_model_stages_h100.json")) in model


def test_what_was_run() -> None:
    covered = lists.coverage(ROWS)
    says(f"ran {covered['lists']} lists on one H200, three repeats each")
    says(f"`device` ran {covered['device']}: the fixed lists and the population")
    assert {row["repeats"] for row in ROWS} == {3}
    assert covered["graph-cached"] == covered["serial"] == covered["lists"]
    fixed = {row["workload"] for row in ROWS if "emission=ahead" in row["workload"]} | {"wired"}
    assert {row["workload"] for row in ROWS if row["executor"] == "device"} == fixed | {"population"}
    whole = [row["executor"] for row in ROWS if "emission=whole" in row["workload"]]
    assert set(whole) == {"serial", "graph-cached"}
    assert all(row["legal"] and row["equal"] and not row["error"] for row in ROWS)


def _published() -> list[dict[str, object]]:
    result = json.loads((ROOT / "benchmarks/results/scheduler_h200.json").read_text(encoding="utf-8"))
    return result["published"]


def test_robots_that_pause() -> None:
    result = json.loads((ROOT / "benchmarks/results/pauses_apart_h200.json").read_text(encoding="utf-8"))
    (whole,) = (row for row in result["rows"] if row["part"] == "everything")
    found = {
        (row["executor"], row["emission"]): f"{row['tenth_pauses_us']:,.0f} us"
        for row in result["executors"]
        if row["options"].get("streams", 8) == 8
    }
    says(f"take kept graphs {whole['tenth_pauses_us']:.0f} us a step on an H200")
    says(f"{found['streams', 'whole']} with whole steps and {found['streams', 'counted']} by counts")
    says(f"`serial` {found['serial', 'counted']} by counts")


def test_robots_whose_kernels_are_told_to_end() -> None:
    rows = json.loads((ROOT / "benchmarks/results/pauses_flags_h200.json").read_text(encoding="utf-8"))["rows"]
    of = {(row["run"], row["part"]): row for row in rows}
    decision = (ROOT / "docs/decisions/0013-lists-that-come-and-go.md").read_text(encoding="utf-8")
    ratios: dict[str, list[float]] = {"everything": [], "left out": []}
    for run in sorted({run for run, _ in of}):
        cells = [str(of[run, "everything"]["graphs"])]
        for part, found in ratios.items():
            every, some = of[run, part]["all_us"], of[run, part]["tenth_pauses_us"]
            found.append(some / every)
            cells += [f"{every:.0f}", f"{some:.0f}", f"{found[-1]:.2f}"]
        assert f"| {' | '.join(cells)} |" in decision
    assert max(ratios["everything"]) < 1.15
    says(f"in four runs a step then took {reach(ratios['everything'], 2)} times as long as one of all robots")
    says(f"and {reach(ratios['left out'], 2)} times with the lists left out")


def test_sets_of_ready_calls() -> None:
    rows = json.loads((ROOT / "benchmarks/results/device_ready_h200.json").read_text(encoding="utf-8"))["rows"]
    assert all(row["legal"] and row["equal"] and not row["error"] for row in rows)
    us = {(row["workload"], row["executor"]): row["us_per_step"] for row in rows}
    names = {name for name, _ in us}
    found = [us[name, "device:ready=true"] / us[name, "device"] for name in names]
    assert (len(names), min(found) > 1) == (7, True)
    says(f"it took {reach(found, 2)} times as long as without on seven lists")
    decision = " ".join((ROOT / "docs/decisions/0006-device-executor.md").read_text(encoding="utf-8").split())
    assert f"takes {reach(found, 2)} times as long as tickets in program order on seven fixed lists" in decision
    assert f"{statistics.geometric_mean(found):.2f} in the mean, and is faster on none" in decision


def test_robots_that_pause_with_the_longest_lists_first() -> None:
    rows = json.loads((ROOT / "benchmarks/results/pauses_order_h200.json").read_text(encoding="utf-8"))["rows"]
    of = {(row["together"], row["order"]): row for row in rows if row["connections"] == 8}
    halves = of[64, "flops first"]
    ratio = halves["tenth_pauses_us"] / halves["all_us"]
    says(f"kept graphs take {halves['tenth_pauses_us']:.0f} us, {ratio:.2f} times a step of all robots")
    decision = (ROOT / "docs/decisions/0013-lists-that-come-and-go.md").read_text(encoding="utf-8")
    for words, key in (
        ("in one graph, as they come", (2048, "as is")),
        ("in one graph, the longest first", (2048, "flops first")),
        ("in two graphs, the longest first", (64, "flops first")),
    ):
        every, some = of[key]["all_us"], of[key]["tenth_pauses_us"]
        assert f"| {words} | {every:.0f} | {some:.0f} | {some / every:.2f} |" in decision
