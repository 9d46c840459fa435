"""Every device body has the arguments that its stage declares, whichever kernel it is part of."""

from __future__ import annotations

import re

import pytest

from simengine.kernels.signatures import body_signature
from simengine.physics.stage import Stage
from simengine.plan.every_kernel import all_kernels
from simengine.plan.pairs import PAIR_KERNELS
from simengine.plan.variants import with_branches

KERNELS = (*all_kernels(), *with_branches(), *PAIR_KERNELS)
STAGES = {stage.name: stage for kernel in KERNELS for stage in kernel.stages}


@pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)
def test_the_body_has_the_declared_signature(stage: Stage) -> None:
    source = re.sub(r"//.*", "", stage.source.read_text())
    found = re.findall(rf"DEVICE void {stage.function}\([^)]*\)", source)
    assert [re.sub(r"\s+", "", f) for f in found] == [re.sub(r"\s+", "", body_signature(stage))]
