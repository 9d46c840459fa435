"""Models of many trees for the tests, and the chain of kernels that solves them island by island."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import mujoco
import numpy as np

from simengine.kernels.kernel import Kernel
from simengine.model import ModelTable, load_table
from simengine.model.pair_types import PAIR_TYPES
from simengine.plan import catalogue, contact_kernels, smooth_kernels
from simengine.plan import islands as island_kernels
from simengine.plan.pairs import PAIR_KERNELS
from simengine.plan.scratch import class_bounds
from simengine.plan.variants import variant_for
from simengine.state.fields import INTEGRATION_STATE, PAIR_ARENAS, TOTALS
from simengine.state.island_fields import COLUMN_OF_ARENA, LARGE_ISLANDS, NUM_ISLAND_CLASSES
from tests.stages.harness import Argument, Memory, Pointer, arguments, call

ARM = """
<body name="arm{k}" pos="-1.5 {y} 1.1">
  <joint name="shoulder{k}" axis="0 1 0" damping="0.3" range="-0.5 0.5" limited="true"/>
  <geom type="capsule" size="0.05" fromto="0 0 0 0.6 0 0"/>
  <body pos="0.6 0 0">
    <joint name="elbow{k}" axis="0 1 0" damping="0.2" range="-0.7 0.7" limited="true"/>
    <geom type="capsule" size="0.05" fromto="0 0 0 0.5 0 0"/>
    <body pos="0.5 0 0"><joint type="ball" damping="0.1" armature="0.02"/><geom size="0.09"/></body>
  </body>
</body>
"""


def heap(bodies: int, clump: int = 5, integrator: str = "Euler", rise: float = 0.21) -> str:
    """Free spheres and capsules in clumps of `clump`, `rise` [m] above each other, beside two arms; see ARM."""
    rng = np.random.default_rng(bodies)
    side = 8
    loose = []
    for i in range(bodies):
        n, level = divmod(i, clump)
        x, y = 1.5 * np.array([n % side, n // side]) + rng.uniform(-0.1, 0.1, 2)
        angle = rng.uniform(0, 3)
        kind = f'type="capsule" size="0.07 0.1" euler="0 {angle:.3f} 1"' if i % 2 else 'size="0.12"'
        place = f'pos="{x:.3f} {y:.3f} {0.115 + rise * level:.3f}"'
        loose.append(f"<body name='loose{i}' {place}><freejoint/><geom {kind}/></body>")
    return f"""
<mujoco model="heap_{bodies}">
  <compiler angle="radian"/>
  <option timestep="0.004" integrator="{integrator}"/>
  <default><geom density="600"/></default>
  <worldbody><geom type="plane" size="20 20 1"/>{ARM.format(k=0, y=0)}{"".join(loose)}{ARM.format(k=1, y=1.5)}
  </worldbody>
  <tendon>
    <fixed name="coupling" range="-0.2 0.2" limited="true">
      <joint joint="shoulder0" coef="1"/><joint joint="elbow0" coef="-0.5"/>
    </fixed>
  </tendon>
  <sensor><e_kinetic/><subtreelinvel body="arm1"/></sensor>
</mujoco>
"""


def crooked(xml: str) -> str:
    """A heap whose arms have nonlinear dampers."""
    return xml.replace('damping="0.2"', 'damping="0.2 0.3 0.1"').replace('damping="0.1"', 'damping="0 0.2 0"')


ROPES = """
    <spatial name="leash" range="0 0.25" limited="true" stiffness="30" damping="2">
      <site site="post"/><site site="on3"/>
    </spatial>
    <spatial name="strap" frictionloss="0.5" springlength="0.1" stiffness="20">
      <site site="on4"/><site site="on5"/>
    </spatial>
    <spatial name="sling" range="0.1 0.3"><site site="on6"/><geom geom="ball6"/><site site="on7"/></spatial>
"""
"""Spatial tendons to the world, and between trees of neighbours."""


def roped(xml: str) -> str:
    """A heap with spatial tendons that have springs, limits, friction, actuators and equality constraints."""
    sites = '<site name="post" pos="-0.2 1 1"/>'
    xml = xml.replace("<worldbody>", f"<worldbody>{sites}")
    for i in range(3, 8):
        site = f'<site name="on{i}" pos="0.05 0.16 0"/><geom name="ball{i}"'
        xml = re.sub(rf"(<body name='loose{i}'[^>]*><freejoint/>)<geom", rf"\1{site}", xml)
    actuators = '<actuator><motor tendon="sling" gear="3"/><position tendon="strap" kp="5"/></actuator>'
    equality = '<equality><tendon tendon1="leash" tendon2="sling" polycoef="0 0.5 0 0 0"/></equality>'
    return xml.replace("</tendon>", f"{ROPES}</tendon>{equality}{actuators}")


def every_row(xml: str) -> str:
    """A heap with equalities within and between trees, friction losses, and elliptic cones that resist spinning."""
    equalities = """
    <equality>
      <connect body1="loose0" body2="loose1" anchor="0 0 0.1"/><weld body1="loose5" body2="arm1"/>
      <connect body1="loose8" anchor="0 0 0"/><joint joint1="elbow0" joint2="shoulder1" polycoef="0 0.5 0 0 0"/>
    </equality>
    """
    xml = xml.replace("<option", '<option cone="elliptic"').replace('damping="0.3"', 'damping="0.3" frictionloss="0.4"')
    return xml.replace('density="600"', 'density="600" condim="4"').replace("<tendon>", equalities + "<tendon>")


GEOMS = ('type="sphere" size="0.11"', 'type="capsule" size="0.07 0.06"', 'type="box" size="0.09 0.08 0.1"')


def pile(cone: str, bodies: int = 50) -> str:
    """Spheres, capsules and boxes over a corner of walls, with an arm of three joints hanging among them."""
    rng = np.random.default_rng(5)
    loose = []
    for i in range(bodies):
        x, y = 0.24 * np.array([i % 3, i // 3 % 3]) + rng.uniform(-0.03, 0.03, 2)
        place = f'pos="{x:.3f} {y:.3f} {0.13 + 0.25 * (i // 9):.3f}"'
        turn = f'euler="{rng.uniform(0, 3):.2f} {rng.uniform(0, 3):.2f} 0" condim="{(3, 4, 6, 1)[i % 4]}"'
        loose.append(f"<body {place}><freejoint/><geom {GEOMS[i % 3]} {turn}/></body>")
    arm = "".join(
        f'<body pos="0 0 -0.25"><joint axis="{axis}" range="-1 1" limited="true" frictionloss="0.2"/>'
        '<geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.25" condim="4"/>'
        for axis in ("1 0 0", "0 1 0", "1 0 0")
    )
    walls = "".join(
        f'<geom type="plane" size="5 5 1" pos="{p}" zaxis="{z}"/>'
        for p, z in (("0 0 0", "0 0 1"), ("-0.2 0 0", "1 0 0"), ("0.7 0 0", "-1 0 0"), ("0 -0.2 0", "0 1 0"))
    )
    return f"""
<mujoco model="pile">
  <compiler angle="radian"/><option timestep="0.004" cone="{cone}"/>
  <default><geom density="500"/></default>
  <worldbody>{walls}<geom type="plane" size="5 5 1" pos="0 0.7 0" zaxis="0 -1 0"/>
    <body pos="0.24 0.24 1.3">{arm}{"</body>" * 3}</body>{"".join(loose)}
  </worldbody>
</mujoco>
"""


def touching_arms(touching: int, option: str = "", joint: str = "", links: int = 27) -> str:
    """Three arms of hinges with springs, of which `touching` press their tips against each other: they are an island.

    `option` and `joint` are attributes of these elements.
    """
    arms = ""
    for k in range(3):
        chain = "".join(
            f'<body pos="{0.03 if i else 0} 0 0">'
            f'<joint axis="{("0 0 1", "0 1 0", "1 0.5 0")[i % 3]}" stiffness="8" damping="0.05" {joint}/>'
            '<geom type="capsule" fromto="0 0 0 0.03 0 0" size="0.01" mass="0.05" contype="0" conaffinity="0"/>'
            for i in range(links)
        )
        back = 0.03 * links + (0.08 if k < touching else 1.0)
        arms += (
            f'<body euler="0 0 {120 * k}"><body pos="{-back} 0 0">{chain}'
            f'<body pos="0.03 0 0"><geom size="0.1" mass="0.1"/></body>{"</body>" * links}</body></body>'
        )
    return f"""
<mujoco model="arms_{touching}">
  <default><joint armature="0.02"/></default>
  <option timestep="0.002" gravity="0 0 -0.5" {option}/>
  <worldbody>{arms}</worldbody>
</mujoco>
"""


def dense(model: ModelTable) -> ModelTable:
    """The same model, in the form that is solved as one dense problem."""
    other = load_table(model.mj)
    other.solve_by_islands(False)
    return other


@cache
def dropped(xml: str, steps: tuple[int, ...]) -> dict[str, np.ndarray]:
    """States of a model after MuJoCo has let it fall for each number of steps. Values are exact in float32."""
    mj = load_table(xml).mj
    data = mujoco.MjData(mj)
    found: dict[str, list[np.ndarray]] = {"qpos": [], "qvel": []}
    for step in range(max(steps) + 1):
        if step in steps:
            for name, values in found.items():
                values.append(getattr(data, name).astype(np.float32).astype(np.float64))
        mujoco.mj_step(mj, data)
    return {name: np.array(values) for name, values in found.items()}


def filled(memory: Memory, states: dict[str, np.ndarray]) -> Memory:
    """The memory with the given states. Other state fields are zero."""
    memory.set({name: np.zeros(memory.own(name).shape) for name in INTEGRATION_STATE} | states)
    return memory


Calls = Iterator[tuple[Kernel, list[Argument]]]


def counting(memory: Memory) -> Calls:
    """The calls up to the first count."""
    for kernel in (*island_kernels.fitting(memory.model, catalogue.position(memory.model.general_position)),):
        yield kernel, arguments(kernel, memory)
    if memory.model.finds_pairs:
        yield from ((kernel, arguments(kernel, memory)) for kernel in PAIR_KERNELS[:-1])
    yield contact_kernels.SCAN_KERNEL, arguments(contact_kernels.SCAN_KERNEL, memory)


def chain(memory: Memory, integrator: str = "", upto: str = "") -> Calls:
    """Yield the calls of a step, up to a variant of the kernel `upto`. Carry out each before asking for the next."""
    model, upto = memory.model, upto or "no kernel"
    yield from counting(memory)
    *solution, scatter = island_kernels.island_solution(model)
    smooth = island_kernels.fitting(
        model, smooth_kernels.smooth(model.general_smooth, model.has_fluid, model.has_adhesion)
    )
    narrow: tuple[Kernel, ...] = tuple(contact_kernels.NARROW[PAIR_TYPES[code]] for code in model.pair_codes)
    narrow = PAIR_KERNELS[-1:] if model.finds_pairs else narrow
    for kernel in (variant_for(model, kernel) for kernel in (*smooth, *narrow)):
        if kernel.name.startswith(upto):
            return
        yield kernel, arguments(kernel, memory)
    for kernel in solution:
        if kernel.name.startswith(upto):
            return
        if kernel.unit == "island":
            yield from ((kernel, over_islands(kernel, memory, c)) for c in range(LARGE_ISLANDS))
        elif kernel.unit == "large island":
            yield from ((kernel, over_islands(kernel, memory, c)) for c in range(LARGE_ISLANDS, NUM_ISLAND_CLASSES))
        else:
            yield kernel, arguments(kernel, memory)
    for kernel in (scatter, *island_kernels.island_integrator(integrator)):
        yield kernel, arguments(kernel, memory)


def over_islands(kernel: Kernel, memory: Memory, island_class: int) -> list[Argument]:
    """Arguments of a solver over the islands of one class."""
    sizes = {**memory.model.sizes, "nv": class_bounds(memory.model)[island_class]}
    plan = kernel.plan_scratch(sizes, 0, registers=False)
    totals = Pointer("island_totals", 4 * island_class)
    head: list[Argument] = [
        memory.header,
        Pointer("model_ints"),
        Pointer("model_reals"),
        Pointer("island_record"),
        totals,
        island_class,
        0,
        None,
    ]
    fields = [Pointer(kernel.stored_as(name)) for name in (*kernel.reads, *kernel.produced, *kernel.updates)]
    extra: list[Argument] = [Pointer(name) for name in (*kernel.addresses, *kernel.island_scratch)]
    extra += [Pointer(name) if memory.model.finds_pairs else None for name in kernel.parameters]
    return [*head, *fields, *extra, *(plan.offsets[item.name] for item in kernel.scratch_items), plan.words]


def prepared(model: ModelTable, dtype: str, states: dict[str, np.ndarray]) -> Memory:
    """A memory with states and with arenas that fit exactly. Everything else is poisoned."""
    n, sizes = len(states["qpos"]), {"contact": 0, "row": 0}
    memory = filled(Memory(model, dtype, n, 0, 0), states)
    pairs: dict[str, int] = {}
    for kernel, slots in counting(memory):
        if kernel.name == "find_pairs":
            pairs = dict(zip(PAIR_ARENAS, memory.own("pair_totals").ravel().tolist(), strict=True))
            break
        call(kernel, memory, slots)
    if pairs:
        memory = filled(Memory(model, dtype, n, 0, 0, pairs), states)
        for kernel, slots in counting(memory):
            call(kernel, memory, slots)
    totals = dict(zip(TOTALS, memory.own("totals").ravel().tolist(), strict=True))
    sizes |= {"contact": totals["ncon"], "row": totals["nefc"]}
    memory = filled(Memory(model, dtype, n, sizes["contact"], sizes["row"], pairs), states)
    for kernel, slots in chain(memory, upto="only_gather"):
        call(kernel, memory, slots)
    counts = memory.own("island_totals").ravel().tolist()
    islands = {space: counts[column] for space, column in COLUMN_OF_ARENA.items()}
    return filled(Memory(model, dtype, n, sizes["contact"], sizes["row"], islands | pairs), states)
