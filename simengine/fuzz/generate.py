"""Whole models, drawn at random over every feature that the engine has."""

from __future__ import annotations

from simengine.fuzz.bodies import FIELDS, MESHES, Names, world
from simengine.fuzz.draw import Draw, words
from simengine.fuzz.elements import actuators, contacts, equalities, sensors, tendons

SOLVERS = ("Newton", "PGS", "CG")
INTEGRATORS = ("Euler", "RK4", "implicitfast", "implicit")
CONES = ("pyramidal", "elliptic")
FLAGS = (
    *("gravity", "spring", "damper", "limit", "contact", "actuation", "filterparent", "eulerdamp", "clampctrl"),
    *("warmstart", "constraint", "sensor", "equality", "frictionloss", "refsafe", "midphase", "multiccd", "island"),
)
"""Flags that models may disable."""

_CORNERS, _CELLS = 9, 6


def generate(seed: int | str) -> str:
    """Draw a model.

    Args:
        seed: equal seeds give equal models.

    Returns:
        MJCF. MuJoCo may refuse it: a draw does not know everything that its compiler forbids.
    """
    draw, names = Draw(seed), Names()
    bodies = world(draw, names)
    wound = tendons(draw, names)
    driven = actuators(draw, names, len(wound))
    sections = {
        "asset": _assets(draw, names),
        "worldbody": [bodies],
        "tendon": wound,
        "equality": equalities(draw, names, len(wound)),
        "contact": contacts(draw, names),
        "actuator": driven,
        "sensor": sensors(draw, names, len(wound), len(driven)),
    }
    parts = [f"<{name}>\n{chr(10).join(lines)}\n</{name}>" for name, lines in sections.items() if lines]
    return f'<mujoco><compiler angle="radian"/>{options(draw)}\n{chr(10).join(parts)}\n</mujoco>'


def options(draw: Draw) -> str:
    """The option element."""
    text = draw.attributes(
        timestep=lambda: draw.choice((0.002, 0.005, 0.01)),
        gravity=lambda: "0.5 -0.3 -9.8",
        wind=lambda: draw.vector(1),
        density=lambda: draw.number(1, 500),
        viscosity=lambda: draw.number(0.1, 1),
        impratio=lambda: draw.number(1, 5),
        noslip_iterations=lambda: draw.choice((0, 0, 3)),
    )
    solver = draw.choice(SOLVERS)
    chosen = f'integrator="{draw.choice(INTEGRATORS)}" solver="{solver}" cone="{draw.choice(CONES)}"'
    flags = " ".join(f'{flag}="disable"' for flag in draw.several(FLAGS, 0, 2))
    if draw.chance(0.1):
        flags += ' override="enable"'
        text += ' o_margin="0.02" o_solref="0.03 0.9" o_friction="0.8 0.7 0.01 0.002 0.001"'
    # CG agrees to fewer digits if it stops before it has converged
    many = 'iterations="2000"' if solver == "CG" else ""
    return f'<option tolerance="1e-12" ls_tolerance="1e-12" {many} {chosen} {text}><flag {flags}/></option>'


def _assets(draw: Draw, names: Names) -> list[str]:
    """The meshes and height fields that geoms refer to."""
    found = []
    for mesh in MESHES:
        if mesh in names.meshes:
            corners = (draw.rng.uniform(-0.12, 0.12) for _ in range(3 * _CORNERS))
            found.append(f'<mesh name="{mesh}" vertex="{words(*(round(x, 4) for x in corners))}"/>')
    for hfield in FIELDS:
        if hfield in names.fields:
            heights = words(*(draw.number(0, 1) for _ in range(_CELLS * _CELLS)))
            size = f'nrow="{_CELLS}" ncol="{_CELLS}" size="1 1 0.3 0.2"'
            found.append(f'<hfield name="{hfield}" {size} elevation="{heights}"/>')
    return found
