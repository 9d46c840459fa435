"""Free bodies that connections and a weld hold together, beside a pendulum, in kernels whose lanes share them on a GPU.

The kernels run on the host, with lanes as fibers.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from simengine.model import load_table
from simengine.state.fields import FIELD
from tests.helpers.cuda_on_host.program import SCHEDULES
from tests.helpers.cuda_on_host.resident import FiberResident
from tests.helpers.islands import chain, dropped, prepared
from tests.stages.harness import call, changed

BODIES = "".join(
    f'<body name="b{i}" pos="{0.1 * i} 0 0.08" euler="0 {7 * i} 0"><joint type="free" damping="1e-3"/>'
    '<geom type="capsule" size="0.03 0.02"/></body>'
    for i in range(12)
)
PENDULUM = (
    '<body pos="9 0 1"><joint axis="0 1 0" damping="0.1"/><geom type="capsule" size="0.02 0.1"/>'
    '<body pos="0 0 0.3"><joint axis="1 0 0"/><geom type="capsule" size="0.02 0.1"/></body></body>'
)
CONNECTIONS = "".join(f'<connect body1="b{i}" body2="b{i + 1}" anchor="0.05 0 0"/>' for i in range(10))
NET = f"""
<mujoco><option timestep="0.002" integrator="INTEGRATOR"/>
  <worldbody><geom type="plane" size="9 9 1"/>{BODIES}{PENDULUM}</worldbody>
  <equality>{CONNECTIONS}<weld body1="b10" body2="b11"/><connect body1="b0" anchor="0 0 0" active="false"/></equality>
</mujoco>
"""


@pytest.mark.parametrize("integrator", ["implicitfast", "implicit", "euler"])
def test_lanes_that_share_bodies_compute_what_one_lane_does(integrator: str) -> None:
    xml = NET.replace("INTEGRATOR", {"euler": "Euler"}.get(integrator, integrator))
    if integrator == "euler":  # few enough for lanes to share the rows of each
        xml = xml.replace('<connect body1="b0" body2="b1" anchor="0.05 0 0"/>', "", 1)
        xml = re.sub(r'<connect body1="b[3-7]" [^>]*/>', "", xml)
    memory = prepared(load_table(xml), "float64", dropped(xml, (0, 30)))
    shared = set()
    for kernel, slots in chain(memory, integrator):
        if kernel.unit == "world" and not kernel.name.startswith(("only_gather", "only_islands", "plane", "capsule")):
            ours = []
            for schedule in SCHEDULES:
                away = FiberResident(memory.copy(), schedule)
                away.call(kernel, slots)
                away.fetch()
                ours.append(away.memory)
            call(kernel, memory, slots)
            for name in (*kernel.produced, *kernel.updates):
                assert not any(changed(ours[0].own(name), other.own(name)).any() for other in ours)
                if FIELD[name].kind == "real":
                    found, expected = ours[0].own(name), memory.own(name)
                    least = 1e-9 * max(1.0, np.nanmax(np.abs(expected), initial=0))
                    np.testing.assert_allclose(found, expected, rtol=0, atol=least, err_msg=f"{kernel.name}: {name}")
            shared.add(kernel.name)
        else:
            call(kernel, memory, slots)
    assert {"only_constraint_blocks", "only_factor_blocks", "only_acceleration_blocks"} < shared
