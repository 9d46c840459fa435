"""The golden cases: small models, which together use every part of the physics, and the inputs of their worlds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mujoco

from tests.golden.scenes import logs, stacks, tables
from tests.models import compile_model

WORLDS = 6
"""Number of worlds of each model."""

CHUNKS, CHUNK = 10, 20
"""A case takes CHUNKS times CHUNK steps. The inputs of its worlds change between chunks."""

Source = Callable[[], mujoco.MjModel]

_ENUMS = {
    "integratorEuler": mujoco.mjtIntegrator.mjINT_EULER,
    "integratorimplicitfast": mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
    "coneelliptic": mujoco.mjtCone.mjCONE_ELLIPTIC,
    "solverCG": mujoco.mjtSolver.mjSOL_CG,
}


@dataclass(frozen=True)
class Case:
    """A batch and what is done to it.

    Attributes:
        sources: functions that compile the models, one for each group of WORLDS worlds.
        contacts: least number of contacts of all worlds, at the end of the chunk that has most.
        rows: least number of constraint rows, counted in the same way.
        keep: derived fields that steps leave valid, and that are part of the hash.
        params: parameters by MuJoCo's names. They are drawn for every world, and later drawn again for some worlds.
        equalities: whether a random choice of equality constraints is active in each chunk.
        pauses: pairs of a chunk and the index of the group that is paused in it.
        resets: chunks before which the odd worlds are reset.
    """

    sources: tuple[Source, ...]
    contacts: int
    rows: int
    keep: tuple[str, ...] = ()
    params: tuple[str, ...] = ()
    equalities: bool = False
    pauses: tuple[tuple[int, int], ...] = ()
    resets: tuple[int, ...] = ()


def named(name: str, integrator: str = "", cone: str = "", solver: str = "") -> Source:
    """A model of `tests.models`, with the given options in place of its own."""
    wanted = {"integrator": integrator, "cone": cone, "solver": solver}

    def source() -> mujoco.MjModel:
        mj = compile_model(name)
        for option, value in wanted.items():
            if value:
                setattr(mj.opt, option, _ENUMS[option + value])
        return mj

    return source


def written(xml: str) -> Source:
    """A model of MJCF text."""
    return lambda: mujoco.MjModel.from_xml_string(xml)


_JOINED = """
<equality>
  <connect body1="body0" body2="body1" anchor="0 0 0.1"/><weld body1="body3" body2="body4"/>
  <joint joint1="elbow" joint2="shoulder" polycoef="0 0.5 0 0 0"/>
</equality>
"""
_MASSES = ("gravity", "body_mass", "body_inertia", "geom_friction", "dof_damping", "dof_armature", "actuator_gainprm")

CASES: dict[str, Case] = {
    # integrators, cones and solvers
    "ant, RK4": Case((named("ant"),), contacts=4, rows=20),
    "ant, Euler, kept fields": Case((named("ant", "Euler"),), 2, 12, keep=("qacc", "xpos", "cfrc_ext")),
    "humanoid, RK4, PGS": Case((named("humanoid"),), 12, 40),
    "humanoid, Euler, CG, elliptic": Case((named("humanoid", "Euler", "elliptic", "CG"),), 12, 40),
    "ragdoll, implicit, mocap": Case((named("ragdoll"),), 6, 30, keep=("sensordata",)),
    "glider, implicitfast, fluid": Case((named("glider"),), 2, 16),
    "swimmer, RK4, fluid": Case((named("swimmer"),), 0, 1),
    "crates, Newton, elliptic": Case((named("crates", cone="elliptic"),), 20, 40),
    "dual, PGS, elliptic": Case((named("dual"),), 16, 60),
    "contact parameters, RK4": Case((named("contact_parameters"),), 16, 50),
    "rollers, CG": Case((named("rollers"),), 10, 60),
    # parts of models
    "linkage, noslip, equalities": Case((named("linkage"),), 10, 120, keep=("sensordata",), equalities=True),
    "tendons, sensors": Case((named("tendons", "implicitfast"),), 4, 20, keep=("sensordata",)),
    "actuators, muscles": Case((named("actuators"),), 6, 20, keep=("sensordata", "actuator_force")),
    "ropes, spatial tendons": Case((named("ropes"),), 0, 12, keep=("sensordata",)),
    "rubble, meshes": Case((named("rubble"),), 50, 200),
    "terrain, height field": Case((named("terrain"),), 10, 40, keep=("sensordata",)),
    # many trees
    "stacks, islands": Case((written(stacks(4, 3)),), 70, 280),
    "stacks, islands, elliptic, equalities": Case(
        (written(stacks(4, 3, 'cone="elliptic" integrator="implicitfast"', _JOINED)),), 60, 200, equalities=True
    ),
    "stacks, islands, PGS": Case((written(stacks(4, 3, 'solver="PGS"')),), 70, 280),
    "wide stacks": Case((written(stacks(2, 4, 'cone="elliptic"')),), 40, 120),
    "logs, one large island": Case((written(logs(6)),), 100, 400),
    "logs, one large island, CG, elliptic": Case((written(logs(6, 'solver="CG" cone="elliptic"')),), 100, 300),
    "logs, one large island, PGS": Case((written(logs(6, 'solver="PGS"')),), 100, 400),
    "tables, found pairs": Case((written(tables(18)),), 200, 800),
    # batches
    "hopper, parameters": Case((named("hopper"),), 6, 24, params=_MASSES, resets=(6,)),
    "stacks, RK4, parameters": Case(
        (written(stacks(4, 3, 'integrator="RK4"')),), 60, 240, params=("gravity", "body_mass", "geom_friction")
    ),
    "five models, some pause": Case(
        (named("ant"), named("half_cheetah"), named("pile"), named("two_arms"), written(stacks(4, 3))),
        *(80, 300),
        pauses=((3, 0), (4, 0), (7, 4)),
        resets=(5,),
    ),
}
