"""Jobs: how calls are cut into them, and the queues that they wait in."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from simengine_scheduler import AwaitCounts, KernelCall, Segments
from simengine_scheduler.core.emission import Feeder
from simengine_scheduler.core.hazards import HazardTracker, conflict
from simengine_scheduler.jobs.cutting import Job, JobCutter
from simengine_scheduler.jobs.kinds import JobKind
from simengine_scheduler.jobs.queues import JobQueues
from simengine_scheduler.testing.fake_device import FakeDevice
from tests.scheduler.programs import Program, Spec, specs

# ------------------------------------------------------------------------------------------------------------- cutting


def cut(program: Program) -> tuple[list[KernelCall], list[Job]]:
    """Calls in program order, and the jobs made of them; each await is over when all emitters wait."""
    cutter, jobs, calls = JobCutter(HazardTracker(program.segments.conflicts), 3), list[Job](), list[KernelCall]()

    def is_complete(seq: int) -> bool:
        cutter.split_after(seq)
        return False

    feeder = Feeder(program.emitters(), is_complete)
    while not feeder.exhausted:
        while (call := feeder.pull()) is not None:
            calls.append(call)
            cutter.add(feeder.latest, call, feeder.emitter)
        cutter.close_all()
        jobs += cutter.take_closed()
        for seq in list(feeder.waiting):
            feeder.release(seq)
    return calls, jobs


@settings(max_examples=50, deadline=None)
@given(specs())
def test_jobs_keep_to_the_hazards_and_never_wait_in_a_circle(emitters: list[list[Spec]]) -> None:
    program = Program(emitters)
    calls, jobs = cut(program)
    assert sorted(seq for job in jobs for seq in job.calls) == list(range(len(calls)))
    place = {job.number: position for position, job in enumerate(jobs)}
    job_of = {seq: job for job in jobs for seq in job.calls}
    behind: dict[int, set[int]] = {}
    for position, job in enumerate(jobs):
        assert list(job.calls) == sorted(job.calls)
        assert all(place[other] < position for other in job.before)
        behind[job.number] = job.before.union(*(behind[other] for other in job.before))
    for seq, call in enumerate(calls):
        for other in range(seq):
            if conflict(calls[other], call, program.segments.conflicts):
                assert job_of[other] is job_of[seq] or job_of[other].number in behind[job_of[seq].number]


def names(jobs: list[Job]) -> list[list[str]]:
    return [[call.name for call in job.calls.values()] for job in jobs]


def call(table: Segments, name: str, *writes: str) -> KernelCall:
    return KernelCall(name, FakeDevice().launch(lambda: None), (), tuple(map(table.intern, writes)))


def test_emitters_that_share_nothing_are_a_job_each() -> None:
    table = Segments()
    cutter = JobCutter(HazardTracker(table.conflicts), 2)
    for seq in range(6):
        cutter.add(seq, call(table, f"{seq}", f"own{seq % 3}"), seq % 3)
    cutter.close_all()
    jobs = cutter.take_closed()
    assert names(jobs) == [["0", "3"], ["1", "4"], ["2", "5"]]
    assert [job.home for job in jobs] == [0, 1, 0]
    assert [job.before for job in jobs] == [set(), set(), set()]


def test_a_job_that_another_emitter_must_come_after_is_closed() -> None:
    table = Segments()
    cutter = JobCutter(HazardTracker(table.conflicts), 2)
    for seq, (emitter, writes) in enumerate([(0, "xy"), (1, "z"), (0, "y"), (1, "x"), (0, "y"), (1, "z")]):
        cutter.add(seq, call(table, f"{emitter}{seq}", *writes), emitter)
    cutter.close_all()
    jobs = cutter.take_closed()
    assert names(jobs) == [["00", "02"], ["04"], ["11", "13", "15"]] or names(jobs) == [
        ["00", "02"],
        ["11", "13", "15"],
        ["04"],
    ]
    first, others = jobs[0], jobs[1:]
    assert all(job.before == {first.number} for job in others)


def test_an_awaited_call_ends_its_job() -> None:
    table = Segments()
    scan, smooth = call(table, "scan", "counts"), call(table, "smooth", "other")
    program_items = [scan, smooth, AwaitCounts(scan), call(table, "solve", "other")]
    cutter = JobCutter(HazardTracker(table.conflicts), 1)
    feeder = Feeder([iter(program_items)], lambda seq: cutter.split_after(seq) is not None)
    while (item := feeder.pull()) is not None:
        cutter.add(feeder.latest, item, feeder.emitter)
    cutter.close_all()
    jobs = cutter.take_closed()
    assert names(jobs) == [["scan"], ["smooth"]]
    assert jobs[1].before == {jobs[0].number}


def test_very_long_lists_are_more_than_one_job() -> None:
    table = Segments()
    cutter = JobCutter(HazardTracker(table.conflicts), 2)
    link = call(table, "link", "x")
    for seq in range(1500):
        cutter.add(seq, link, 0)
    cutter.close_all()
    first, second = cutter.take_closed()
    assert (len(first.calls), len(second.calls)) == (1024, 476)
    assert second.before == {first.number}


def test_whole_jobs_are_dealt_out_one_by_one() -> None:
    table = Segments()
    kind = JobKind("kind", lambda arguments: [])
    cutter = JobCutter(HazardTracker(table.conflicts), 2)
    cutter.add(0, call(table, "before", "x"), 0)
    for seq in range(1, 4):
        cutter.add(seq, KernelCall(f"job{seq}", kind.job(), (), (table.intern(f"y{seq}"),)), 0)
    jobs = cutter.take_closed()
    assert names(jobs) == [["before"], ["job1"], ["job2"], ["job3"]]
    assert [job.home for job in jobs] == [0, 0, 1, 0]


# -------------------------------------------------------------------------------------------------------------- queues


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 3), st.integers(1, 20))
def test_every_job_flies_once_within_the_bound(seed: int, workers: int, depth: int, count: int) -> None:
    draw = random.Random(seed)
    queues = JobQueues(workers, depth)
    before = [{draw.randrange(job) for _ in range(draw.randrange(4))} if job else set() for job in range(count)]
    homes = [draw.randrange(workers) for _ in range(count)]
    launched, complete, entered = list[int](), set[int](), 0
    for _ in range(10 * count):
        choice, worker = draw.choice(["put", "take", "steal", "complete"]), draw.randrange(workers)
        if choice == "put" and entered < count:
            queues.put(entered, homes[entered], before[entered])
            entered += 1
        elif choice in ("take", "steal"):
            idle = not queues.flying[worker]
            job = queues.take(worker) if choice == "take" else queues.steal(worker)
            if job is not None:
                assert choice == "steal" or homes[job] == worker
                assert choice == "take" or (idle and before[job] <= complete)
                assert before[job] <= {*launched}
                launched.append(job)
        elif choice == "complete" and queues.flying[worker]:
            oldest = queues.flying[worker][0]
            if before[oldest] <= complete:
                assert queues.complete(worker) == oldest
                complete.add(oldest)
        assert all(len(flying) <= depth for flying in queues.flying)
        assert queues.waiting == entered - len(launched)
    assert len(set(launched)) == len(launched)
    while len(complete) < entered:  # whatever happened so far, the rest goes on
        for worker in range(workers):
            while (job := queues.take(worker)) is not None:
                launched.append(job)
        able = [w for w in range(workers) if queues.flying[w] and before[queues.flying[w][0]] <= complete]
        assert able
        complete.add(queues.complete(able[0]))
    assert sorted(launched) == list(range(entered))


def test_the_newest_job_of_the_longest_queue_is_stolen() -> None:
    queues = JobQueues(3, 2)
    for job in range(5):
        queues.put(job, 0, ())
    queues.put(5, 1, ())
    assert queues.steal(2) == 4
    assert queues.steal(2) is None  # it has something to do
    assert queues.complete(2) == 4
    assert queues.steal(2) == 3


def test_jobs_that_would_have_to_wait_are_not_stolen() -> None:
    queues = JobQueues(2, 2)
    queues.put(0, 0, ())
    queues.put(1, 0, (0,))
    assert queues.take(0) == 0
    assert queues.steal(1) is None
    assert queues.complete(0) == 0
    assert queues.steal(1) == 1


def test_a_job_waits_in_its_queue_for_those_that_are_not_launched() -> None:
    queues = JobQueues(2, 2)
    queues.put(0, 0, ())
    queues.put(1, 1, (0,))
    queues.put(2, 1, ())
    assert queues.take(1) == 2
    assert queues.take(1) is None
    assert queues.take(0) == 0
    assert queues.take(1) == 1
    assert queues.waiting == 0
