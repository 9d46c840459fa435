"""Islands that lanes of a GPU find and gather in shared memory, on the host with lanes as fibers."""

from __future__ import annotations

import re

import pytest

from simengine.model import load_table
from simengine.plan.islands import by_block
from tests.helpers.cuda_on_host.program import SCHEDULES
from tests.helpers.cuda_on_host.resident import FiberResident
from tests.helpers.islands import chain, dropped, pile, prepared
from tests.stages.harness import call, changed


@pytest.mark.parametrize(("dense", "pushing"), [(8, False), (16, False), (64, False), (16, True)])
def test_lanes_find_and_gather_the_islands_that_one_lane_does(dense: int, pushing: bool) -> None:
    """With short rows, of which several share a warp, and with long ones; of few blocks, and of dense matrices."""
    xml = pile("pyramidal", 12)
    if pushing:
        xml = re.sub(r' condim="\d"| frictionloss="0.2"', "", xml)
    finding = {"only_islands", "only_gather_pushing" if pushing else "only_gather"}
    model = load_table(xml)
    model.solve_dense_up_to(dense)
    memory = prepared(model, "float32", dropped(xml, (0, 30, 60, 90)))
    for kernel, slots in chain(memory, upto="solve_large_islands"):
        if kernel.name in finding:
            before = memory.copy()
            call(kernel, memory, slots)
            for form, schedule in ((form, own) for form in (kernel, by_block(kernel)) for own in SCHEDULES):
                away = FiberResident(before.copy(), schedule)
                away.call(form, slots)
                away.fetch()
                names = (*kernel.produced, *kernel.updates)
                found = [n for n in names if changed(away.memory.own(n), memory.own(n)).any()]
                assert set(found) <= {"block_label", "block_root"}, f"{form.name} differs in {found}"
        else:
            call(kernel, memory, slots)
    assert finding <= {kernel.name for kernel, _ in chain(memory)}
