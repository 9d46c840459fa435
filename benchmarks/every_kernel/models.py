"""The models whose steps launch every kernel: combs, and those that the tests share."""

from __future__ import annotations

from collections.abc import Iterator

import mujoco
import numpy as np

import simengine
from benchmarks.features.probes import pair
from benchmarks.models import ASSETS
from benchmarks.scaling_models import crowded_arm, furnished_room

BODIES = (0, 1, 3, 5)
"""Free bodies beside the comb: nv is 7, 13, 25 and 37."""

TEETH, TOOTH, STEP = 40, 0.02, 0.002
"""Teeth, their radius [m], and how much higher each stands than the one before it [m]."""

TOUCHING = (0, 1, 3, 6, 12, 25, 40)
"""Teeth on the floor in the first worlds, one world for each size class; at the end lie worlds of other kinds."""

PEGS = (3.0, 0.0, 1.0)
"""Where a ball and a capsule stand that the comb's handle can touch [m]."""


def comb_xml(bodies: int, integrator: str, option: str = "", in_fluid: bool | None = None, knob: str = "") -> str:
    """A comb with a handle, a knob and a hinged tail, over a floor, beside two pegs and so many free bodies.

    With Euler it stands in a fluid, unless told otherwise, so that both kernels of the smooth forces run. Its other
    knob, if it has one, meets the floor only.
    """
    in_fluid = integrator == "Euler" if in_fluid is None else in_fluid
    fluid = 'density="1.2" viscosity="0.1" wind="1 0 0"' if in_fluid else ""
    teeth = "".join(
        f'<geom size="{TOOTH}" pos="{0.1 * (k % 8)} {0.1 * (k // 8)} {STEP * k}" contype="0" conaffinity="2"/>'
        for k in range(TEETH)
    )
    shapes = ('size="0.1"', 'type="capsule" size="0.06 0.12"')
    others = "".join(f"<body><freejoint/><geom {shapes[k % 2]}/></body>" for k in range(bodies))
    x, y, z = PEGS
    return f"""
    <mujoco model="comb_{bodies}_{integrator}">
      <option timestep="0.002" integrator="{integrator}" {fluid} {option}/>
      <worldbody>
        <geom type="plane" size="5 5 1" contype="3" conaffinity="3"/>
        <geom size="0.05" pos="{x} {y + 0.12} {z - 0.07}"/>
        <geom type="capsule" size="0.04 0.2" pos="{x} {y} {z + 0.05}" zaxis="0 1 0"/>
        <body>
          <freejoint/>
          {teeth}
          {f'<geom {knob} pos="0.3 0 0.02" contype="0" conaffinity="2"/>' if knob else ""}
          <geom type="capsule" size="0.04 0.1" pos="-0.3 0 0.05" zaxis="1 0 0"/>
          <geom size="0.05" pos="-0.3 0.12 0.05"/>
          <body pos="0 -0.2 0.3">
            <joint name="tail" type="hinge" axis="0 0 1" range="-30 30" limited="true" damping="0.1"/>
            <geom type="capsule" fromto="0 0 0 0 -0.2 0" size="0.02"/>
          </body>
        </body>
        {others}
      </worldbody>
      <actuator><motor joint="tail"/></actuator>
    </mujoco>
    """


def states(model: simengine.Model, worlds: int) -> np.ndarray:
    """(worlds, nq): worlds of each size class, one at the pegs, and others thrown at random."""
    rng = np.random.default_rng(0)
    bodies = (model.nq - 8) // 7
    qpos = np.tile(model.qpos0, (worlds, 1))
    for world, state in enumerate(qpos):
        role = world % (len(TOUCHING) + 5)
        for body in range(bodies):
            place = state[8 + 7 * body : 15 + 7 * body]
            place[:3] = rng.uniform([-0.2, -0.2, 0.02], [0.2, 0.2, 0.2])
            place[3:] = rng.normal(size=4)
            if role <= len(TOUCHING):
                place[:3] = 10 + body, 0, 1
        if role < len(TOUCHING):
            # the tooth that touches last lies half a step deep
            state[2] = TOOTH - STEP * (TOUCHING[role] - 0.5)
            state[7] = 0.6 * (role % 2)
        elif role == len(TOUCHING):
            state[:3] = PEGS[0] + 0.3, PEGS[1], PEGS[2] - 0.05
        else:
            state[2] = rng.uniform(0, 0.2)
            state[3:7] = rng.normal(size=4)
            state[7] = rng.uniform(-0.7, 0.7)
    return qpos


def rooms() -> Iterator[tuple[str, str]]:
    """Models whose geoms are in clusters: of few pairs and of many, and with pairs that need a search."""
    yield "crowded arm", crowded_arm(48)
    yield "room", furnished_room(256)
    yield "room of searches", furnished_room(256).replace('type="capsule"', 'type="cylinder"')


def shared_models() -> Iterator[tuple[str, mujoco.MjModel]]:
    """Models of the tests, each row and pair type among them, with every solver and integrator."""
    from tests import models
    from tests.helpers import islands, medley

    solvers, integrators = mujoco.mjtSolver, mujoco.mjtIntegrator
    for name, text in models.OWN.items():
        yield name, mujoco.MjModel.from_xml_string(text)
    yield "pusher", mujoco.MjModel.from_xml_path(str(ASSETS / "pusher.xml"))
    yield "mesh", mujoco.MjModel.from_xml_string(pair("plane", "mesh"))
    yield "medley", mujoco.MjModel.from_xml_string(medley.medley(28))
    for name, text in rooms():
        yield name, mujoco.MjModel.from_xml_string(text)
    heap, tower = islands.heap(20), islands.heap(48, clump=16, rise=0.15)
    variations: tuple[tuple[str, str, str, int], ...] = (
        *(("linkage", models.OWN["linkage"], "solver", int(s)) for s in (solvers.mjSOL_CG, solvers.mjSOL_PGS)),
        *(("pile", models.OWN["pile"], "solver", int(s)) for s in (solvers.mjSOL_CG, solvers.mjSOL_PGS)),
        *(("heap", heap, "solver", int(s)) for s in (solvers.mjSOL_NEWTON, solvers.mjSOL_CG, solvers.mjSOL_PGS)),
        ("heap", heap, "cone", int(mujoco.mjtCone.mjCONE_ELLIPTIC)),
        *(("tower", tower, "solver", int(s)) for s in (solvers.mjSOL_NEWTON, solvers.mjSOL_PGS)),
        ("crooked heap", islands.crooked(heap), "integrator", int(integrators.mjINT_EULER)),
        *(
            ("heap", heap, "integrator", int(i))
            for i in (integrators.mjINT_RK4, integrators.mjINT_IMPLICIT, integrators.mjINT_IMPLICITFAST)
        ),
    )
    for name, text, option, value in variations:
        mj = mujoco.MjModel.from_xml_string(text)
        setattr(mj.opt, option, value)
        yield f"{name}, {option} {value}", mj
