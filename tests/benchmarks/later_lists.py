"""What docs/executors.md says of lists that were measured on hosts with eight cores, from the committed results."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from tests.benchmarks.varying_lists import Row, best, by_list, varies

AHEAD = [
    "| robot | `serial`, by counts | `serial` | `streams` | `graph-cached` | `device` |",
    "|---|---|---|---|---|---|",
]

WAYS = ("window, whole", "kept graphs")


def us(of: dict[str, Row], executor: str) -> float:
    """What a step takes an executor, or the best one with a window [us]."""
    row = best(of, "window") if executor == "window" else of[executor]
    return float(row["us_per_step"])


def times(ratios: Sequence[float]) -> str:
    """Geometric mean, least and most of some ratios."""
    return f"{statistics.geometric_mean(ratios):.2f} times as fast ({min(ratios):.2f} to {max(ratios):.2f})"


def called(name: str) -> str:
    """What the page calls a list."""
    return f"`{name.partition(':')[0]}`" + " ahead of counts" * name.endswith("-ahead")


def shares_of_auto(rows: Sequence[Row]) -> dict[str, float]:
    """How many times as long `auto` takes as the best other executor, by list."""
    return {
        name: us(of, "auto") / min(us(of, executor) for executor in of if executor != "auto")
        for name, of in by_list(rows).items()
    }


def missed(rows: Sequence[Row]) -> dict[str, float]:
    """The same of lists on which `auto` takes more than 5 % longer, by what the page calls them."""
    found = {called(name): share for name, share in shares_of_auto(rows).items() if share > 1.05}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def sentences(rows: Sequence[Row]) -> list[str]:
    """What the page says of lists that vary."""
    lists = by_list(rows)
    varying = [of for name, of in lists.items() if varies(name)]
    with_graphs = [of for of in varying if "graph-cached" in of]
    of_serial = [us(of, "serial") / us(of, "window") for of in varying]
    of_graphs = [us(of, "graph-cached") / us(of, "window") for of in with_graphs]
    off = missed(rows)
    named = ", ".join(f"{share:.2f} times as long on {name}" for name, share in off.items())
    near = [of["serial"]["bound"]["least_us"] >= 0.9 * us(of, "window") for of in varying]
    waits = [of["serial"]["bound"]["awaits"] for of, reached in zip(varying, near, strict=True) if not reached]
    humanoid = lists["humanoid:emission=stages"]
    over = us(humanoid, "window") / us(humanoid, "serial")
    return [
        f"On the {len(varying)} lists that vary, the best executor with a window is {times(of_serial)} as `serial`",
        f"over kept graphs on {len(with_graphs)} of them it is {times(of_graphs)}",
        f"`auto` is within 5 % of the fastest, or faster, on {len(lists) - len(off)} of {len(lists)} lists",
        f"`auto` takes {named}",
        f"times of an executor spread by {100 * statistics.median(row['spread'] for row in rows):.0f} % in the median",
        f"On `humanoid` the best executor with a window takes {over:.2f} times as long as `serial`",
        f"It reaches 90 % of the bound on {sum(near)} of the {len(near)} lists",
        f"On the others the host waits for counts {min(waits):.0f} to {max(waits):.0f} times a step",
    ]


def again_sentences(rows: Sequence[Row]) -> list[str]:
    """What the page says of `auto` on lists that were run again."""
    shares = shares_of_auto(rows)
    (off,) = (name for name, share in shares.items() if share > 1.05)
    near = [f"{share:.2f} on {called(name)}" for name, share in shares.items() if share <= 1.05]
    return [
        f"`auto` is within 5 % of the fastest, or faster, on {len(near)} of {len(shares)} lists",
        *(sentence.replace(" on", " times as long on") if "half" in sentence else sentence for sentence in near),
        f"On `{off}` it takes {shares[off]:.2f} times as long",
        f"whose times spread by {100 * by_list(rows)[off]['streams']['spread']:.0f} %",
    ]


def ahead_table(rows: Sequence[Row]) -> list[str]:
    """Robots by stages ahead of counts, microseconds a step."""
    lists, lines = by_list(rows), list(AHEAD)
    for name, of in lists.items():
        if name.endswith("=stages-ahead"):
            counted = us(lists[name.removesuffix("-ahead")], "serial")
            found = [counted, *(us(of, executor) for executor in ("serial", "streams", "graph-cached", "device"))]
            lines.append(f"| {name.partition(':')[0]} | {' | '.join(f'{one:.0f}' for one in found)} |")
    return lines


def ahead_sentences(rows: Sequence[Row]) -> list[str]:
    """What the page says of them."""
    lists = by_list(rows)
    names = [name for name in lists if name.endswith("=stages-ahead")]
    counted = [us(lists[name.removesuffix("-ahead")], "serial") for name in names]

    def over(executor: str) -> str:
        return times([one / us(lists[name], executor) for one, name in zip(counted, names, strict=True)])

    same = times([us(lists[name], "serial") / us(lists[name], "device") for name in names])
    return [
        f"`device` is {over('device')} as `serial` by counts",
        f"and {same} as `serial` on the same list",
        f"Kept graphs of these lists are {over('graph-cached')} as `serial` by counts",
    ]


THREADS = ["| list | none | 1 | 2 | 3 | 4 |", "|---|---|---|---|---|---|"]


def threads_table(rows: Sequence[Row]) -> list[str]:
    """What a step takes `streams` by the number of launch threads, in microseconds."""
    lines = list(THREADS)
    for name, of in by_list(rows).items():
        found = (of.get(f"streams:launchers={threads}") for threads in range(5))
        cells = [f"`{name}`", *(f"{row['us_per_step']:,.0f}" if row else "" for row in found)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def later_training_sentences(rows: Sequence[Row]) -> list[str]:
    """What the page says of a later training, where steps that are whole have no launch threads."""
    rates = {way: [r["environment_steps_per_s"] for r in rows if r["way"] == way] for way in {r["way"] for r in rows}}
    window = [*rates["window, whole, 0 threads"]]
    window += [r["environment_steps_per_s"] for r in rows if r["way"] == "window, whole" and r["run"] == 2]
    (auto,), (counted,), (threaded,) = (rates[w] for w in ("auto, whole", "window, 0 threads", "window, 3 threads"))
    graphs = rates["kept graphs"]
    return [
        f"kept graphs made {min(graphs):,} to {max(graphs):,} environment steps a second in {len(graphs)} turns",
        f"the window on whole steps {min(window):,} to {max(window):,} in {len(window)}",
        f"`auto` chose kept graphs and made {auto:,}, trials included",
        f"By counts, the window made {counted:,} with one thread, and {threaded:,} with three launch threads",
    ]


OWN_PACE = [
    "| way | lists | us a step | environment steps a second | over kept graphs | turns |",
    "|---|---|---|---|---|---|",
]


def own_pace_rates(rows: Sequence[Row]) -> dict[str, float]:
    """Environment steps a second, the median over turns, by way."""
    ways = dict.fromkeys(row["way"] for row in rows)
    return {way: statistics.median(r["environment_steps_per_s"] for r in rows if r["way"] == way) for way in ways}


def own_pace_table(rows: Sequence[Row]) -> list[str]:
    """A training in which robots step at their own pace, and in which they wait for each other."""
    lines, rates = list(OWN_PACE), own_pace_rates(rows)
    for way, rate in rates.items():
        own = [row for row in rows if row["way"] == way]
        us_per_step = statistics.median(row["us_per_step"] for row in own)
        cells = [way, f"`{own[0]['executor']}`, `{own[0]['emission']}`", f"{us_per_step:,.0f}", f"{rate:,.0f}"]
        cells += [f"{rate / rates['kept graphs']:.2f}", str(len(own))]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def own_pace_sentences(rows: Sequence[Row]) -> list[str]:
    """What the page says of it."""
    rates = own_pace_rates(rows)
    window = rates["window, own pace"]
    return [
        f"makes {window / rates['kept graphs']:.2f} times as many environment steps a second as kept graphs",
        f"{window / rates['one by one']:.2f} times as many as one robot after another",
        f"{window / rates['window, whole']:.2f} times as many as the window where robots wait for each other",
        f"{window / rates['graphs, own pace']:.2f} times as many as graphs of the same lists",
    ]


def peer_sentences(frameworks: Sequence[Row], learning: Sequence[Row]) -> list[str]:
    """What the page says of products in PyTorch and JAX, and of the list `learning`."""
    took = {row["way"]: f"{row['us_per_step']:,.0f} us" for row in frameworks}
    varying, fixed = ({executor: f"{us(of, executor):,.0f}" for executor in of} for of in by_list(learning).values())
    return [
        f"a step takes JAX {took['jax']}, PyTorch {took['torch']}, PyTorch with a stream for each chain "
        f"{took['torch, streams']}, `streams` {took['streams']} and `serial` {took['serial']}",
        f"`streams` takes {varying['streams']} us a step, `serial` {varying['serial']} and kept graphs "
        f"{varying['graph-cached']}",
        f"kept graphs take {fixed['graph-cached']} us, `streams` {fixed['streams']} and `serial` {fixed['serial']}",
        f"`auto` takes {varying['auto']} and {fixed['auto']} us",
    ]


def training_sentence(rows: Sequence[Row]) -> str:
    """What the page says of three runs of a training."""
    found = []
    for run in sorted({row["run"] for row in rows}):
        own = [row for row in rows if row["run"] == run]
        rates = {way: [r["environment_steps_per_s"] for r in own if r["way"] == way] for way in WAYS}
        found += [a / b for a, b in zip(*rates.values(), strict=True)]
    return f"the window made {', '.join(f'{one:.2f}' for one in found[:-1])} and {found[-1]:.2f} times as many"


def modelled_sentence(rows: Sequence[Row], modelled: Sequence[Row]) -> str:
    """What docs/simulated.md says of how long these lists take beside the model."""
    lists, model = by_list(rows), {row["workload"]: row for row in modelled}

    def longer(executor: str, column: str) -> str:
        found = [
            us(of, executor) / model[name.removesuffix("-ahead")][column]
            for name, of in lists.items()
            if name.endswith("=stages-ahead")
        ]
        return f"{min(found):.2f} to {max(found):.2f} times"

    of_device, of_graphs = longer("device", "device"), longer("graph-cached", "graph-cached, ahead")
    return f"`device` takes {of_device} as long as the model says, and kept graphs {of_graphs}"


DRIVER = [
    "| list | executor | us a step | kernels | graphs | events and waits | queries | rest |",
    "|---|---|---|---|---|---|---|---|",
]
IN_DRIVER = (
    "humanoid:emission=stages",
    "ant:emission=stages",
    "half_cheetah:emission=stages",
    "asynchronous:worlds=16",
)


def driver_table(rows: Sequence[Row]) -> list[str]:
    """Where the time of a step goes: functions of the driver, and the rest, in microseconds and how often."""
    lines = list(DRIVER)
    for row in rows:
        if row["workload"] in IN_DRIVER:
            spent, often = row["driver_us"], row["calls"]
            cells = [f"`{row['workload'].partition(':')[0]}`", f"`{row['executor']}`", f"{row['us_per_step']:,.0f}"]
            cells += [f"{spent[what]:,.0f} ({often[what]:.0f})" for what in ("launch", "graph")]
            cells += [f"{spent['record'] + spent['wait']:.0f} ({often['record'] + often['wait']:.0f})"]
            cells += [f"{spent['query']:,.0f} ({often['query']:,.0f})", f"{row['left_us']:,.0f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def driver_sentences(rows: Sequence[Row]) -> list[str]:
    """What the page says of it."""
    launched = [row["driver_us"]["launch"] / row["calls"]["launch"] for row in rows if row["executor"] == "serial"]
    graphs = [row["driver_us"]["graph"] / row["calls"]["graph"] for row in rows if row["calls"]["graph"] >= 1]
    return [
        f"A launch of a kernel takes `serial` {min(launched):.1f} to {max(launched):.1f} us in these lists",
        f"a launch of a graph {min(graphs):.1f} to {max(graphs):.1f} us",
    ]
