"""Launches every kernel at least once, with few worlds: `python -m benchmarks.every_kernel --worlds 12`.

It is meant for checkers of memory, which slow kernels down a hundred times:

    compute-sanitizer --tool memcheck  python -m benchmarks.every_kernel
    compute-sanitizer --tool racecheck python -m benchmarks.every_kernel
    compute-sanitizer --tool synccheck python -m benchmarks.every_kernel
    compute-sanitizer --tool initcheck python -m benchmarks.every_kernel --raw

Run it once without a checker first, so that the kernels are compiled and cached. Each array is an allocation of its
own, so that a checker notices an access beyond its end. With `--part 1/4` the program runs a quarter of the models, for
several processes at a time, and does not check whether every kernel ran.

The first models are combs: free bodies with teeth of different lengths. The height of a comb sets the number of
contacts and constraint rows of its world. Other free bodies make the numbers of dofs that need 8, 16 and 32 lanes, and
more dofs than lanes. Each comb runs every size class of the solver, light pair types, the fused integrators,
evaluations, and each stage alone. On a GPU it also runs kernels of whole steps, with and without a fluid, and with
geoms of light and of plain pair types. The next models are those that the tests share, with other solvers and
integrators if these use other kernels, and a heap that is solved island by island. The exit code is 1 if a kernel never
ran, or if a healthy world has a value that is not finite.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import mujoco
import numpy as np

import simengine
from benchmarks.features.probes import pair
from benchmarks.models import ASSETS
from simengine.backends.base import lanes_for
from simengine.backends.cuda import CudaBackend
from simengine.backends.host import HostBackend
from simengine.check.states import STATE_ARRAYS, Sampler
from simengine.emission.shard import ShardEmitter
from simengine.engines.list_engine import ListEngine
from simengine.kernels.step_kernel import step_kernel
from simengine.model.table import PAIR_TYPES
from simengine.physics.stage import Stage
from simengine.plan import catalogue
from simengine.plan.evaluation import Launch, Listed, plan_evaluation
from simengine.plan.every_kernel import all_kernels
from simengine.plan.selection import Selection
from simengine.state.fields import FIELDS, ROW_CLASSES
from simengine_scheduler.calls import Item

BODIES = (0, 1, 3, 5)
"""Number of free bodies beside the comb: nv is 7, 13, 25 and 37."""

TEETH, TOOTH, STEP = 40, 0.02, 0.002
"""Number of teeth, their radius [m], and how much higher each tooth ends than the one before it [m]."""

TOUCHING = (0, 1, 3, 6, 12, 25, 40)
"""Number of teeth on the floor in the first worlds, one world for each size class. Other kinds of worlds follow."""

PEGS = (3.0, 0.0, 1.0)
"""Position of a ball and a capsule that the comb's handle can touch [m]."""

Runs = Counter[tuple[str, str]]
"""How often each call ran, by its name and the kind of model."""


def comb_xml(bodies: int, integrator: str, option: str = "", in_fluid: bool | None = None, knob: str = "") -> str:
    """MJCF of a comb with a handle, a knob and a hinged tail over a floor, beside two pegs and free bodies.

    Without `in_fluid` there is a fluid only with Euler, so that both kernels of smooth forces run. `knob` has the
    attributes of a second knob, which only touches the floor.
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
    """`qpos` (worlds, nq): a world for each size class, one at the pegs, and others at random."""
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
            # the last tooth that touches penetrates the floor by half a step
            state[2] = TOOTH - STEP * (TOUCHING[role] - 0.5)
            state[7] = 0.6 * (role % 2)
        elif role == len(TOUCHING):
            state[:3] = PEGS[0] + 0.3, PEGS[1], PEGS[2] - 0.05
        else:
            state[2] = rng.uniform(0, 0.2)
            state[3:7] = rng.normal(size=4)
            state[7] = rng.uniform(-0.7, 0.7)
    return qpos


def worlds_of(stage: Stage) -> tuple[Listed | None, ...]:
    """The lists of worlds with which a step launches a stage; None stands for all worlds."""
    columns = (*(f"rows_{bound}" for bound in ROW_CLASSES), "rows_more")
    classes = tuple(Listed(column, "size class", number) for number, column in enumerate(columns))
    if stage.name in PAIR_TYPES:
        return (Listed(stage.name, "pair type", PAIR_TYPES.index(stage.name)),)
    if stage is catalogue.UNCONSTRAINED:
        return classes[:1]
    if stage is catalogue.CONSTRAINT or stage in catalogue.SOLVERS.values():
        return classes[1:]
    return classes if stage in catalogue.INTEGRATORS.values() else (None,)


def single_stages(emitter: ShardEmitter, log: list[str]) -> Iterator[Item]:
    """Emit each stage as a kernel of its own, in the order of a step. Every field must be stored."""
    stored = frozenset(f.name for f in FIELDS)
    model = emitter._store.model
    evaluation = plan_evaluation(Selection(model, 1, model.opt_integrator, stored, ahead=False), 0)
    used = {stage.name for kernel in evaluation.kernels for stage in kernel.stages}
    for stage in (s for s in catalogue.STAGES if s.name in used):
        for listed in worlds_of(stage):
            launch = Launch(catalogue.single(stage), listed=listed)
            call = emitter.factory.make(launch, stored, {"rk_stage": 0, "rk_last": 0}).call
            log.append(call.name)
            yield call


def variant(model: simengine.Model) -> str:
    """The kind of a model, by the lanes that work on a world."""
    lanes = lanes_for(model.nv)
    return f"{lanes} lanes" if model.nv <= lanes else f"{lanes} lanes, nv > {lanes}"


def run_model(bodies: int, integrator: str, args: argparse.Namespace, runs: Runs, option: str = "") -> list[str]:
    """Run steps, an evaluation and single stages of one comb. Returns the problems found."""
    model = simengine.load_model(comb_xml(bodies, integrator, option))
    hows = HOW[:1] if model.has_islands else HOW
    return [problem for how in hows for problem in run_comb(model, how, args, runs)]


def made(model: simengine.Model, keep: tuple[str, ...], emission: str, args: argparse.Namespace) -> Any:
    """A simulation with a way of emission, and an executor that supports it."""
    executor = ("streams" if emission == "counted" else "graph-cached") if args.backend == "cuda" else "auto"
    return simengine.Simulation(
        model,
        args.worlds,
        backend=args.backend,
        executor=executor,
        emission=emission,
        dtype=args.dtype,
        keep=keep,
        on_nonfinite="freeze",
    )


def run_whole(
    bodies: int, integrator: str, in_fluid: bool, knob: str, args: argparse.Namespace, runs: Runs
) -> list[str]:
    """Run whole steps of one comb. Returns the problems found."""
    model = simengine.load_model(comb_xml(bodies, integrator, "", in_fluid, knob))
    expected = step_kernel(integrator.lower(), in_fluid, bool(knob)).name
    wrong = run_comb(model, "whole", args, runs)
    return wrong if runs[expected, variant(model)] else [*wrong, f"steps of {bodies} bodies did not run {expected}"]


def run_comb(model: simengine.Model, emission: str, args: argparse.Namespace, runs: Runs) -> list[str]:
    """Run a comb with one way of emission. Whole steps store no derived fields. Returns the problems found."""
    sim = made(model, () if emission == "whole" else ("cfrc_ext",), emission, args)
    sim.set_state(qpos=states(model, args.worlds), ctrl=np.full(model.nu, 0.5))
    bad = args.worlds - 1
    sim.qvel[bad, 0] = np.nan
    kind = variant(model)
    for evaluate in (*([sim.forward] if emission != "whole" else []), *[sim.step] * args.steps):
        evaluate()
        runs.update((entry.call.name, kind) for entry in sim.last_kernel_list)
    host = sim.groups[0].to_host
    status, qpos, qvel = (host(sim.field(name)) for name in ("world_status", "qpos", "qvel"))
    wrong = [f"world {w} of {model.name} is flagged {status[w]}" for w in np.flatnonzero(status) if w != bad]
    lost = (status == 0) & ~(np.isfinite(qpos).all(axis=1) & np.isfinite(qvel).all(axis=1))
    wrong += [f"world {w} of {model.name} is healthy and holds NaN" for w in np.flatnonzero(lost)]
    if status[bad] == 0:
        wrong.append(f"the bad world of {model.name} was not found")
    if emission != "whole":
        sim.forward()
        run_single(sim, kind, runs)
    sim.close()
    return wrong


def run_single(sim: simengine.Simulation, kind: str, runs: Runs) -> None:
    """Run each stage of a model alone, after an evaluation. Models with islands are left out: they do so in steps."""
    engine = sim._engine
    assert isinstance(engine, ListEngine), "single stages need a backend with kernel lists: host or cuda"
    if engine.stores[0].model.has_islands:
        return
    for emitter in engine.emitters[0]:
        log: list[str] = []
        engine.executor.run([single_stages(emitter, log)])
        runs.update((name, kind) for name in log)
    sim.synchronize()


def shared_models() -> Iterator[tuple[str, mujoco.MjModel]]:
    """Models of the tests with every solver and integrator. They cover each type of constraint row and geom pair."""
    from tests import islands, medley, models

    solvers, integrators = mujoco.mjtSolver, mujoco.mjtIntegrator
    for name, text in models.OWN.items():
        yield name, mujoco.MjModel.from_xml_string(text)
    yield "pusher", mujoco.MjModel.from_xml_path(str(ASSETS / "pusher.xml"))
    yield "mesh", mujoco.MjModel.from_xml_string(pair("plane", "mesh"))
    yield "medley", mujoco.MjModel.from_xml_string(medley.medley(28))
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


def run_shared(name: str, mj: mujoco.MjModel, args: argparse.Namespace, runs: Runs) -> list[str]:
    """Run a shared model with each way of emission. Returns the problems found."""
    model = simengine.load_model(mj)
    if name.startswith("tower"):  # the tower has fallen into small islands, which are to count as large ones
        model.solve_dense_up_to(8)
    hows = HOW[:1] if model.has_islands else HOW  # islands are always counted
    return [problem for how in hows for problem in run_states(name, model, how, args, runs)]


def run_states(name: str, model: simengine.Model, emission: str, args: argparse.Namespace, runs: Runs) -> list[str]:
    """Run an evaluation and steps of a shared model with one way of emission. Returns the problems found."""
    mj = model.mj
    sim = made(model, ("cfrc_ext", "site_xpos", "sensordata", "ten_length", "actuator_moment"), emission, args)
    sampler = Sampler(mj, 0)
    one_of_each, known = np.unique(model.examples["type"], return_index=True)[1], model.examples
    thrown = [sampler.thrown(int(known["geom1"][c]), int(known["geom2"][c])) for c in one_of_each]
    found = [*thrown, *sampler.settled(args.worlds), sampler.random()]
    for field in STATE_ARRAYS:
        sim.set_state(**{field: np.array([getattr(found[w % len(found)], field) for w in range(args.worlds)])})
    for evaluate in (sim.forward, *[sim.step] * args.steps):
        evaluate()
        runs.update((entry.call.name, "shared") for entry in sim.last_kernel_list)
    host = sim.groups[0].to_host
    status, qpos = host(sim.field("world_status")), host(sim.field("qpos"))
    sim.forward()
    run_single(sim, "shared", runs)
    sim.close()
    return [f"world {w} of {name} is flagged {status[w]}" for w in np.flatnonzero(status)] + [
        f"{name} holds NaN" for _ in range(int(not np.isfinite(qpos).all()))
    ]


def expected() -> list[str]:
    """Names of the calls that must have run: every kernel, and each simple `finish` once for each size class."""
    names = []
    for kernel in all_kernels():
        if kernel.name.startswith("finish") and not kernel.name.endswith("_arena") and kernel.name in LEAN:
            names += [f"{kernel.name}_{bound}" for bound in ROW_CLASSES[1:]]
        else:
            names.append(kernel.name)
    return names


HOW = ("counted", "ahead")
LEAN = frozenset(
    catalogue.finish(integrator, "solve_newton_unilateral", False).name for integrator in ("", "euler", "rk4")
)


def report(runs: Runs) -> list[str]:
    """Print how often each call ran for each kind of model. Returns the kernels that never ran."""
    kinds = list(dict.fromkeys(kind for _, kind in runs))
    print(f"{'kernel':28s}" + "".join(f"{kind:>20s}" for kind in kinds))
    names = {name for name, _ in runs}
    for name in sorted(names):
        print(f"{name:28s}" + "".join(f"{runs[name, kind]:20d}" for kind in kinds))
    # if a kernel has rows in scratch, the names of its calls end with the bound on their number
    return [f"{n} never ran" for n in expected() if not any(name == n or name.startswith(f"{n}_") for name in names)]


def own_allocations() -> None:
    """Let CuPy allocate each array separately, not from a pool."""
    import cupy

    cupy.cuda.set_allocator(None)


def start_raw() -> None:
    """Leave fields and arenas uninitialised: on a GPU as they are allocated, on the host filled with NaN and -1."""

    def on_gpu(self: CudaBackend, shape: tuple[int, ...], dtype: str) -> object:
        return self._cupy.empty(shape, dtype=dtype)

    zeros = HostBackend.zeros

    def on_host(self: HostBackend, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        array = zeros(self, shape, dtype)
        array.reshape(-1).view(np.uint8)[:] = 0xFF
        return array

    CudaBackend.zeros = on_gpu  # type: ignore[method-assign]
    HostBackend.zeros = on_host  # type: ignore[method-assign]


def everything(args: argparse.Namespace, runs: Runs) -> Iterator[Callable[[], list[str]]]:
    """A function for each model, which runs it and returns the problems found."""
    for bodies in BODIES:
        for integrator in ("Euler", "RK4"):
            yield partial(run_model, bodies, integrator, args, runs)
    if args.backend == "cuda":
        knobs = ("", 'type="ellipsoid" size="0.03 0.04 0.02"', 'type="box" size="0.03 0.04 0.02"')
        forms = product(("Euler", "RK4"), (False, True), knobs)
        for number, (integrator, in_fluid, knob) in enumerate(forms):
            for bodies in BODIES[:3] if knob == "" else BODIES[number % 3 : number % 3 + 1]:
                yield partial(run_whole, bodies, integrator, in_fluid, knob, args, runs)
    for option in ('solver="CG"', 'solver="PGS"', 'cone="elliptic"'):
        yield partial(run_model, 0, "RK4", args, runs, option)
    for name, mj in shared_models():
        yield partial(run_shared, name, mj, args, runs)


def part(text: str) -> tuple[int, int]:
    """An argument "K/N", as K and N."""
    number, _, parts = text.partition("/")
    if not (number.isdigit() and parts.isdigit() and 1 <= int(number) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a part; write K/N with K from 1 to N")
    return int(number), int(parts)


def main() -> int:
    """Run all models, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="cuda", choices=["cuda", "host"])
    parser.add_argument("--worlds", type=int, default=len(TOUCHING) + 5, help="at least 12, for every kind of world")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--dtype", default="float32", choices=["float32", "float64"])
    parser.add_argument("--raw", action="store_true", help="leave memory unset, for initcheck")
    parser.add_argument(
        "--part", type=part, default=(1, 1), metavar="K/N", help="only the Kth of N parts of the models"
    )
    args = parser.parse_args()
    if args.backend == "cuda":
        own_allocations()
    if args.raw:
        start_raw()
    begin, runs, wrong = time.perf_counter(), Runs(), list[str]()
    number, parts = args.part
    for run in list(everything(args, runs))[number - 1 :: parts]:
        wrong += run()
    missing = report(runs)
    wrong += missing if parts == 1 else []
    launches, seconds = sum(runs.values()), time.perf_counter() - begin
    print(f"{launches} launches of {len({name for name, _ in runs})} kernels in {seconds:.1f} s on {args.backend}")
    for problem in wrong:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
