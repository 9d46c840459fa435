"""Pairs of convex shapes in random poses: every contact is MuJoCo's, or as near by the shapes themselves."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Model, Simulation, load_model
from simengine.check.check import comparable
from simengine.check.compare import forward_errors
from simengine.check.fields import CONVEX
from simengine.check.oracle import Evaluation, Oracle
from simengine.check.states import Sampler
from simengine.fuzz.nearest import NEAREST, as_near

MARGIN = 0.03
FLOAT32_SLACK = 5.0  # as in fuzzing: the same code is held to the tolerances in float64
SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}
PAIRS = (
    *(("hfield", shape) for shape in ("sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")),
    *(("ellipsoid", shape) for shape in ("sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")),
    *(("mesh", shape) for shape in ("sphere", "capsule")),
    *(("capsule", "cylinder"), ("sphere", "cylinder")),
)
"""Pairs whose contacts are single, or one for each prism of a height field."""
FAILED_ONCE = (
    *(("hfield", "capsule", 12), ("hfield", "cylinder", 9), ("hfield", "ellipsoid", 4), ("hfield", "ellipsoid", 9)),
    *(("mesh", "ellipsoid", 11), ("ellipsoid", "cylinder", 11)),
)
IN_PRISMS = (
    (
        "capsule",
        "0.115 0.132",
        "998319609A381484518528A57A06A1267651",
        (-0.359710604, -0.464214861, 0.205308035, 0.305372119, -0.850241363, -0.0240780916, -0.428086102),
    ),
    (
        "capsule",
        "0.1 0.113",
        "15601911964573187585A265462891531941",
        (-0.592494547, 0.474411696, 0.218357354, 0.0837081745, 0.678478003, -0.33218962, 0.649854302),
    ),
    (
        "capsule",
        "0.1 0.113",
        "15601911964573187585A265462891531941",
        (-0.235212147, 0.102733493, 0.317132354, 0.76134479, -0.44944036, -0.467287272, 0.000213038191),
    ),
    (
        "capsule",
        "0.1 0.113",
        "15601911964573187585A265462891531941",
        (-0.281930774, -0.485044032, 0.131510213, 0.570291936, 0.00109932153, -0.658170521, 0.491505295),
    ),
    (
        "cylinder",
        "0.12 0.05",
        "1988187A17A72A609329043A74060549657A",
        (0.0758644864, 0.461124361, -0.201495752, 0.587693512, 0.0217897613, 0.687764883, 0.425583154),
    ),
)
"""A shape, its size, the heights of a field as digits of tenths, and a pose. The sides of prisms and the capsules gave
four support points in a plane; deep in a prism, the side of the cylinder touches an edge."""


def geom(shape: str, rng: np.random.Generator) -> str:
    """Attributes of a shape of a random size."""
    if shape in ("hfield", "mesh"):
        return f'type="{shape}" {shape}="it"'
    return f'type="{shape}" size="{numbers(rng.uniform(0.04, 0.15, SIZES[shape]))}"'


def numbers(values: np.ndarray) -> str:
    return " ".join(f"{value:.4f}" for value in values)


def drawn(first: str, second: str, seed: int) -> Model:
    """A fixed shape and a free one."""
    rng = np.random.default_rng(seed)
    hills = f'<hfield name="it" nrow="6" ncol="6" size="1 1 0.3 0.2" elevation="{numbers(rng.uniform(0, 1, 36))}"/>'
    mesh = f'<mesh name="it" vertex="{numbers(rng.uniform(-0.12, 0.12, 27))}"/>'
    text = f"""<mujoco><asset>{hills}{mesh}</asset><worldbody><geom {geom(first, rng)} margin="{MARGIN}"/>
      <body><freejoint/><geom {geom(second, rng)}/></body></worldbody></mujoco>"""
    return comparable(load_model(text), seed)[0]


def poses(mj: mujoco.MjModel, number: int, seed: int) -> np.ndarray:
    """Poses (number, 7) of the free shape, exact in float32: over, in and below a field, or around the other shape."""
    rng = np.random.default_rng(seed)
    turns, ways = rng.normal(size=(number, 4)), rng.normal(size=(number, 3))
    if mj.geom_type[0] == mujoco.mjtGeom.mjGEOM_HFIELD:
        places = np.column_stack((rng.uniform(-0.7, 0.7, (number, 2)), rng.uniform(-0.1, 0.45, number)))
    else:
        ways /= np.linalg.norm(ways, axis=1, keepdims=True)
        places = ways * rng.uniform(0.15, 1, (number, 1)) * float(mj.geom_rbound.sum())
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    return np.column_stack((places, turns)).astype(np.float32).astype(np.float64)


def wrong(model: Model, number: int, seed: int, dtype: str) -> tuple[list[str], int]:
    """What is wrong with contacts in so many poses, in words, and how many contacts were compared."""
    oracle, rest = Oracle(model.mj, dtype), Sampler(model.mj, seed).random()
    states = (rest._replace(qpos=pose, qvel=0 * rest.qvel) for pose in poses(model.mj, number, seed))
    found = [evaluation for evaluation in map(oracle.evaluate, states) if evaluation is not None]
    errors = forward_errors(model, oracle, found, "host", dtype)
    bound = CONVEX.of(dtype) * (FLOAT32_SLACK if dtype == "float32" else 1.0)
    beyond = {
        name: {i: error for i, _, error in errors[name] if not error <= (0.0 if name == "contact_geom" else bound)}
        for name in ("contact_geom", "contact_dist", *NEAREST)
    }
    asked: dict[int, Evaluation] = {i: found[i] for name in NEAREST for i in beyond[name]}
    excused = as_near(model, oracle, asked, dict.fromkeys(NEAREST, bound), "host", dtype)
    told = [
        f"{name} off by {error:.2g} at {found[i].state.qpos.tolist()}"
        for name, each in beyond.items()
        for i, error in each.items()
        if name not in NEAREST or i not in excused
    ]
    return told, sum(len(evaluation.fields["contact_dist"]) for evaluation in found)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("first", "second", "seed"), FAILED_ONCE)
def test_contacts_that_were_wrong_once_are_right(first: str, second: str, seed: int, dtype: str) -> None:
    found, compared = wrong(drawn(first, second, seed), 800, seed, dtype)
    assert compared > 100
    assert not found, "\n".join(found)


@pytest.mark.parametrize("backend", ["host", "jax"])
def test_a_capsule_touches_an_edge_beside_its_end_in_single_precision(backend: str) -> None:
    """The end of the edge was as near by rounding, and has another rule for the second contact."""
    model = load_model("""<mujoco><worldbody><geom type="capsule" size="0.0844 0.0938"/><body><freejoint/>
      <geom type="box" size="0.0477 0.1187 0.0751"/></body></worldbody></mujoco>""")
    pose = (-0.193162337, -0.0634885132, -0.0235461146, -0.427710503, 0.725229859, 0.466242731, 0.271519959)
    mj = mujoco.MjData(model.mj)
    mj.qpos[:] = np.asarray(pose, np.float32)
    mujoco.mj_forward(model.mj, mj)
    with Simulation(model, 1, backend=backend, dtype="float32") as sim:
        sim.set_state(qpos=np.asarray(pose)[None])
        sim.forward()
        contacts = sim.contacts(0)
    assert len(contacts.dist) == mj.ncon == 2
    np.testing.assert_allclose(contacts.dist, mj.contact.dist, atol=1e-6)
    np.testing.assert_allclose(np.asarray(contacts.pos).reshape(-1, 3), mj.contact.pos, atol=1e-6)


@pytest.mark.parametrize(("dtype", "exact"), [("float64", 1e-7), ("float32", 2e-6)])
@pytest.mark.parametrize(("shape", "size", "heights", "pose"), IN_PRISMS)
def test_contacts_beside_and_deep_in_prisms_are_mujocos(
    shape: str, size: str, heights: str, pose: tuple[float, ...], dtype: str, exact: float
) -> None:
    elevation = numbers(np.array([int(digit, 16) / 10 for digit in heights]))
    mj = mujoco.MjModel.from_xml_string(f"""<mujoco><option ccd_tolerance="1e-12" ccd_iterations="500"/><asset>
      <hfield name="it" nrow="6" ncol="6" size="1 1 0.3 0.2" elevation="{elevation}"/></asset><worldbody>
      <geom type="hfield" hfield="it" margin="{MARGIN}"/><body><freejoint/><geom type="{shape}" size="{size}"/></body>
      </worldbody></mujoco>""")
    data = mujoco.MjData(mj)
    data.qpos[:] = np.array(pose, np.float32)
    mujoco.mj_fwdPosition(mj, data)
    with Simulation(load_model(mj), num_worlds=1, backend="host", dtype=dtype) as sim:
        sim.set_state(qpos=data.qpos[None])
        sim.forward()
        found = sim.contacts(0)
    np.testing.assert_allclose(found.dist, data.contact.dist, rtol=0, atol=exact)
    np.testing.assert_allclose(found.frame.reshape(-1, 9), data.contact.frame, rtol=0, atol=1e3 * exact)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_contacts_in_random_poses_are_right(first: str, second: str, dtype: str) -> None:
    number = 3000 if first == "hfield" else 6000
    found, compared = wrong(drawn(first, second, 0), number, 0, dtype)
    assert compared > 1000
    # the search in float32 ends near the least depth, and another that is nearly as small may be the one it found
    allowed = compared // 1000 if dtype == "float32" else 0
    assert len(found) <= allowed, "\n".join(found)
    assert not any("contact_dist" in each or "contact_geom" in each for each in found), "\n".join(found)
