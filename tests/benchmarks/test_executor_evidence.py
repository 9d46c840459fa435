"""Statements about executors, in the CUDA backend and on the page on executors, agree with the committed results."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.performance import lists
from benchmarks.performance.results import scheduler_rows
from simengine.backends.cuda import _MEASURED
from tests.benchmarks import executor_page, later_lists, varying_lists

ROOT = Path(__file__).resolve().parents[2]
ROWS = scheduler_rows()
FOUND = executor_page.Found(ROWS)
WINDOWS = "varying_lists_window_h100.json"
PAGE = (ROOT / "docs" / "executors.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())


def says(text: str) -> None:
    assert text in TEXT, f"docs/executors.md does not say {text!r}"


def reach(values: Iterable[float], digits: int) -> str:
    values = list(values)
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def test_lists_under_every_executor() -> None:
    for table in executor_page.tables(FOUND):
        assert "\n".join(table) in PAGE, table[0]
    for sentence in executor_page.sentences(FOUND):
        says(sentence)
    assert [model for model in lists.FIVE if lists.same_list(ROWS, model)] == ["grasp"]  # has no whole steps


def test_why_the_backend_chooses_executors() -> None:
    said = " ".join(_MEASURED.values())
    assert "of eleven executors" in said
    assert all(len(FOUND.of(name)) == 12 for name in executor_page.FIXED)  # with `auto`, which is one of the others
    for sentence in executor_page.reasons(FOUND):
        assert sentence in said, sentence


def test_published_ratios() -> None:
    published = {row["system"]: row["says"] for row in _published()}
    of_acs = next(row["over_serial"] for row in _published() if row["system"] == "ACS-SW")
    for system, _, figure in executor_page.SYSTEMS:
        if figure and system != "ACS-SW":
            assert figure in published[system]
        elif figure:
            assert f"{statistics.fmean(of_acs.values()):.2f}" == figure


def test_pages_are_written_anew_from_other_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PAGE", "BACKEND"):
        copy = tmp_path / name
        copy.write_text(getattr(executor_page, name).read_text(encoding="utf-8"), encoding="utf-8")
        monkeypatch.setattr(executor_page, name, copy)
    other = [
        row
        | {"us_per_step": row["us_per_step"] * (1 + len(row["executor"]) / 9), "parallelism": row["parallelism"] or 1}
        for row in ROWS
    ]
    new = executor_page.Found(other)
    executor_page.renew(FOUND, new)
    page, source = ((tmp_path / name).read_text(encoding="utf-8") for name in ("PAGE", "BACKEND"))
    assert all("\n".join(table) in page for table in executor_page.tables(new))
    assert all(executor_page.pattern(sentence).search(page) for sentence in executor_page.sentences(new))
    assert all(executor_page.pattern(sentence).search(source) for sentence in executor_page.reasons(new))
    assert max(map(len, page.splitlines())) < 400  # rows of tables are longer than other lines


def test_hazard_checks() -> None:
    result = json.loads((ROOT / "benchmarks/results/hazard_check_h200_host.json").read_text(encoding="utf-8"))
    us = {row["list"]: f"{row['median_ns'] / 1e3:.1f} us" for row in result["lists"]}
    size, window = result["segments_per_call"], result["window"]
    says(f"a call with {size} segments against a window of {window} takes {us['worlds']}")
    says(f"{us['random']} on random combinations, and {us['fresh']} where none comes twice")
    on_device = [row for row in _rows("device_window_h200.json") if row["executor"].startswith("device")]
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


def test_training_at_the_pace_of_each_robot() -> None:
    rows = _rows("mixed_training_own_pace_h200.json")
    assert len({row["bits"] for row in rows}) == 1
    main = [
        row for row in rows if row["way"] in (*later_lists.WAYS, "window, own pace", "graphs, own pace", "one by one")
    ]
    assert "\n".join(later_lists.own_pace_table(main)) in PAGE
    for sentence in later_lists.own_pace_sentences(main):
        says(sentence)
    turns = {way: [r["environment_steps_per_s"] for r in rows if r["way"] == way] for way in {r["way"] for r in rows}}
    assert min(turns["window, own pace"]) > max(turns["kept graphs"])
    single, wider = (turns[f"window, own pace, {how}"][0] for how in ("call by call", "64 streams"))
    says(f"Call by call it made {single:,} in a turn, and with 64 streams {wider:,}")
    alone = _rows("mixed_training_profile_h200.json")[0]
    says(f"Five steps of one robot alone take {reach(alone['us'], 0)} us")
    says(f"The slowest robot of a step takes {alone['longest_of_a_step_us']} us in the mean")
    says(f"The longest list takes {alone['longest_list_us_per_step']} us a step")


def test_products_in_frameworks_and_policies_that_learn() -> None:
    learning = _rows("learning_h200.json")
    assert all(row["good"] for row in learning)
    for sentence in later_lists.peer_sentences(_rows("framework_peers_h200.json"), learning):
        says(sentence)


def test_the_way_back_of_workers() -> None:
    rows = {(row["robot"], row["most_registers"]): row for row in _rows("device_path_h200.json")}
    ant, humanoid, wide = rows["ant", 168], rows["humanoid", 168], rows["humanoid", 255]
    for name, row in (("ant", ant), ("humanoid", humanoid)):
        says(f"{row['bodies_us']} us for {name}, where")
        says(f"took {row['recorded_us']} us")
    says(f"humanoid took {wide['device_us']} us instead of {humanoid['device_us']}")


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


def _published() -> list[dict[str, Any]]:
    result = json.loads((ROOT / "benchmarks/results/scheduler_h200.json").read_text(encoding="utf-8"))
    published: list[dict[str, Any]] = result["published"]
    return published


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
