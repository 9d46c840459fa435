"""`make_step` and `make_forward`: the physics of one world as pure JAX functions.

`_forward` reads as a table of contents: each line is a stage, whose mathematics is in `<stage>_jax.py` in a folder of
`simengine/physics`. The functions can be jitted, vmapped, differentiated in forward and reverse mode, and scanned over.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple, overload

import jax
import jax.numpy as jnp
import numpy as np

from simengine.engines.jax_arguments import check_shapes
from simengine.engines.jax_params import Params, of_world
from simengine.model.model import Model, table_of
from simengine.model.model_table import ModelTable
from simengine.physics.actuation.actuation_general_jax import actuation_general
from simengine.physics.actuation.actuation_jax import actuation
from simengine.physics.actuation.actuators_jax import advance_activation
from simengine.physics.actuation.adhesion_jax import adhesion
from simengine.physics.actuation.transmission_jax import transmission
from simengine.physics.collision.narrowphase_jax import narrowphase
from simengine.physics.constraints.constraint_jax import constraint
from simengine.physics.dynamics.acceleration_jax import acceleration
from simengine.physics.dynamics.crb_general_jax import crb_general
from simengine.physics.dynamics.crb_jax import crb
from simengine.physics.dynamics.factor_m_jax import factor_m
from simengine.physics.dynamics.rne_jax import rne
from simengine.physics.integration.euler_general_jax import euler_general
from simengine.physics.integration.euler_jax import euler
from simengine.physics.integration.implicit_jax import implicit
from simengine.physics.integration.implicitfast_jax import implicitfast
from simengine.physics.integration.rk4_jax import REACH, WEIGHT, rk4_point, rk4_rate
from simengine.physics.kinematics.com_pos_jax import com_pos
from simengine.physics.kinematics.com_vel_jax import com_vel
from simengine.physics.kinematics.kinematics_jax import kinematics
from simengine.physics.kinematics.sites_jax import sites
from simengine.physics.math.forest_jax import forest_of
from simengine.physics.math.vector_jax import const
from simengine.physics.passive.fluid_general_jax import fluid_general
from simengine.physics.passive.gravcomp_jax import gravcomp
from simengine.physics.passive.passive_general_jax import passive_general
from simengine.physics.passive.passive_jax import passive
from simengine.physics.sensors.acc_bias_jax import acc_bias
from simengine.physics.sensors.body_forces_jax import body_forces
from simengine.physics.sensors.energy_jax import energy
from simengine.physics.sensors.rne_post_jax import rne_post
from simengine.physics.sensors.sensor_acc_jax import sensor_acc
from simengine.physics.sensors.sensor_distance_jax import sensor_distance
from simengine.physics.sensors.sensor_pos_jax import sensor_pos
from simengine.physics.sensors.sensor_vel_jax import sensor_vel
from simengine.physics.sensors.subtree_vel_jax import subtree_vel
from simengine.physics.solvers.noslip_jax import noslip
from simengine.physics.solvers.solve_cg_jax import solve_cg
from simengine.physics.solvers.solve_newton_general_jax import solve_newton_general
from simengine.physics.solvers.solve_newton_unilateral_jax import solve_newton_unilateral
from simengine.physics.solvers.solve_pgs_jax import solve_pgs
from simengine.physics.tendons.tendon_forces_jax import tendon_forces
from simengine.physics.tendons.tendon_jax import tendon
from simengine.physics.tendons.tendon_passive_jax import tendon_passive
from simengine.physics.tendons.tendon_velocity_jax import tendon_velocity
from simengine.state.fields import SENSED

Fields = dict[str, jax.Array]
"""Derived quantities of one world by MuJoCo's names.

In a large world of small trees (`simengine.physics.math.forest_jax`), qM, qLD and efc_J are stored by families of
bodies. Their method `dense` makes arrays of them.
"""


class State(NamedTuple):
    """The state of one world: all that a step needs of the step before it.

    Attributes:
        qpos: (nq,) coordinates [m, rad].
        qvel: (nv,) velocities [m/s, rad/s].
        qacc_warmstart: (nv,) acceleration from which the solver may start. It changes results by no more than the
            solver's tolerance.
        time: () time since the reset [s].
        qfrc_applied: (nv,) applied generalised force [N, N m].
        xfrc_applied: (nbody, 6) applied force [N] at each body's centre of mass, then torque [N m], world frame.
        mocap_pos, mocap_quat: (nmocap, 3) [m], (nmocap, 4) poses of the mocap bodies.
        eq_active: (neq,) 1 for an active equality constraint, 0 for another; None stands for the model's eq_active0.
        act: (na,) activations; None stands for zeros.
    """

    qpos: jax.Array
    qvel: jax.Array
    qacc_warmstart: jax.Array
    time: jax.Array
    qfrc_applied: jax.Array
    xfrc_applied: jax.Array
    mocap_pos: jax.Array
    mocap_quat: jax.Array
    eq_active: jax.Array | None = None
    act: jax.Array | None = None


def initial_state(model: Model | ModelTable, dtype: Any = jnp.float32) -> State:
    """Return the model's reference configuration qpos0 at rest, without applied forces, at time 0."""
    table = table_of(model)
    return State(
        qpos=jnp.asarray(np.asarray(table.qpos0), dtype),
        qvel=jnp.zeros(table.nv, dtype),
        qacc_warmstart=jnp.zeros(table.nv, dtype),
        time=jnp.zeros((), dtype),
        qfrc_applied=jnp.zeros(table.nv, dtype),
        xfrc_applied=jnp.zeros((table.nbody, 6), dtype),
        mocap_pos=jnp.asarray(table.initial["mocap_pos"], dtype),
        mocap_quat=jnp.asarray(table.initial["mocap_quat"], dtype),
        eq_active=jnp.asarray(table.eq_active0, dtype),
        act=jnp.zeros(table.na, dtype),
    )


def make_forward(model: Model | ModelTable) -> Callable[..., Fields]:
    """Make the forward dynamics of a model.

    Returns:
        A function `forward(state, ctrl, params=None)` that returns every derived field of one world by name and does
            not integrate. `ctrl` has the shape (nu,). `params` is the result of `simengine.make_params`, or None for
            the model's own parameters.
    """
    table = table_of(model).with_candidates()

    def forward(state: State, ctrl: jax.Array, params: Params | None = None) -> Fields:
        check_shapes(table, state, ctrl)
        return _forward(of_world(table, params), state, ctrl)

    return forward


@overload
def make_step(model: Model | ModelTable, derived: Literal[False] = False) -> Callable[..., State]: ...
@overload
def make_step(model: Model | ModelTable, derived: Literal[True]) -> Callable[..., tuple[State, Fields]]: ...
def make_step(model: Model | ModelTable, derived: bool = False) -> Callable[..., Any]:
    """Make the time step of a model, with the model's integrator.

    Args:
        model: the model.
        derived: whether the step also returns derived fields, as they are after mj_step. They are those of the step's
            last evaluation of the dynamics. For Runge-Kutta this is the fourth evaluation, but qacc is the mean that is
            integrated, and the fields of SENSED, such as sensordata, are those of the first evaluation.

    Returns:
        A function `step(state, ctrl, params=None)` that returns the next state, or the next state and the fields.
            `ctrl` has the shape (nu,) and is constant during the step. `params` is the result of
            `simengine.make_params`, or None for the model's own parameters. The step is differentiable by `params` too.
    """
    table = table_of(model).with_candidates()
    integrate = _rk4_step if table.opt_integrator == "rk4" else _single_step

    def step(state: State, ctrl: jax.Array, params: Params | None = None) -> Any:
        check_shapes(table, state, ctrl)
        following, fields = integrate(of_world(table, params), state, ctrl)
        return (following, fields) if derived else following

    return step


def _forward(m: Any, state: State, ctrl: jax.Array) -> Fields:
    f: Fields = {}

    def put(names: str, values: tuple[Any, ...]) -> None:
        f.update(zip(names.split(), values, strict=True))

    qpos, qvel, xfrc, qfrc = state.qpos, state.qvel, state.xfrc_applied, state.qfrc_applied
    # position
    put(
        "xpos xquat xmat xipos ximat xanchor xaxis geom_xpos geom_xmat",
        kinematics(m, qpos, state.mocap_pos, state.mocap_quat),
    )
    put("site_xpos site_xmat", sites(m, f["xpos"], f["xquat"]))
    put("subtree_com cinert cdof", com_pos(m, f["xmat"], f["xipos"], f["ximat"], f["xanchor"], f["xaxis"]))
    bodies, geoms = (f["xpos"], f["xquat"]), (f["geom_xpos"], f["geom_xmat"])
    put("ten_length ten_J", tendon(m, qpos, *bodies, f["subtree_com"], f["cdof"], *geoms))
    inertia = (f["cinert"], f["cdof"])
    near = m.general_smooth or m.has_islands or forest_of(m) is not None
    put("crb qM", crb_general(m, f["xipos"], f["ximat"], f["xanchor"], *inertia) if near else crb(m, *inertia))
    put("qLD", factor_m(m, f["qM"]))
    put("contact_dist contact_pos contact_frame contact_active", narrowphase(m, f["geom_xpos"], f["geom_xmat"]))
    # velocity
    put("cvel cdof_dot", com_vel(m, qvel, f["cdof"]))
    put("ten_velocity", tendon_velocity(m, qvel, f["ten_J"]))
    put("qfrc_passive", (passive_general if m.general_smooth else passive)(m, qpos, qvel))
    put("qfrc_passive", tendon_passive(m, f["ten_length"], f["ten_velocity"], f["ten_J"], f["qfrc_passive"]))
    moving = (*(f["xipos"], f["ximat"], f["geom_xpos"], f["geom_xmat"]), f["subtree_com"], f["cdof"], f["cvel"])
    put("qfrc_fluid qfrc_passive", fluid_general(m, *moving, f["qfrc_passive"]))
    put("qfrc_bias", rne(m, qvel, f["cinert"], f["cdof"], f["cvel"], f["cdof_dot"]))
    eq_active = const(m.eq_active0, qpos) if state.eq_active is None else state.eq_active
    frames = (f["xpos"], f["xquat"], f["xmat"])
    motion = (f["subtree_com"], f["cdof"], f["cvel"], f["cdof_dot"], f["ten_length"], f["ten_J"])
    contacts = (f["contact_dist"], f["contact_pos"], f["contact_frame"], f["contact_active"])
    put(
        "efc_active efc_J efc_pos efc_margin efc_D efc_aref",
        constraint(m, qpos, qvel, *frames, *motion, eq_active, *contacts),
    )
    # acceleration
    reached = (f["xquat"], f["subtree_com"], f["cdof"], f["site_xpos"], f["site_xmat"], f["ten_length"], f["ten_J"])
    put("actuator_length actuator_velocity actuator_moment", transmission(m, qpos, qvel, *reached))
    stuck = (qvel, f["subtree_com"], f["cdof"], *contacts[1:], f["actuator_velocity"], f["actuator_moment"])
    put("actuator_velocity actuator_moment", adhesion(m, *stuck))
    if m.general_smooth:
        driven = (f["actuator_length"], f["actuator_velocity"], f["actuator_moment"])
        put("act_dot actuator_force qfrc_actuator", actuation_general(m, ctrl, _activations(m, state), *driven))
    else:
        put("actuator_force qfrc_actuator", actuation(m, qpos, qvel, ctrl))
        f["act_dot"] = jnp.zeros(0, qpos.dtype)
    lifted = (f["xipos"], f["subtree_com"], f["cdof"], f["qfrc_passive"], f["qfrc_actuator"])
    put("qfrc_gravcomp qfrc_passive qfrc_actuator", gravcomp(m, *lifted))
    smooth = (f["qfrc_passive"], f["qfrc_bias"], f["qfrc_actuator"])
    placed = (f["xipos"], f["subtree_com"], f["cdof"])
    put("qfrc_smooth qacc_smooth", acceleration(m, xfrc, qfrc, *placed, *smooth, f["qLD"]))
    rows = (f["efc_active"], f["efc_J"], f["efc_D"], f["efc_aref"])
    problem = (f["qfrc_smooth"], f["qacc_smooth"], state.qacc_warmstart)
    if m.solver == "solve_newton_unilateral" and forest_of(m) is None:
        put("qacc efc_force qfrc_constraint", solve_newton_unilateral(m, f["qM"], *problem, *rows))
    else:
        solver = {"solve_cg": solve_cg, "solve_pgs": solve_pgs}.get(m.solver, solve_newton_general)
        put("qacc efc_force qfrc_constraint", solver(m, f["qM"], f["qLD"], *problem, *rows))
    solved = (f["qacc"], f["efc_force"], f["qfrc_constraint"])
    put("qacc efc_force qfrc_constraint", noslip(m, f["qM"], f["qLD"], f["qacc_smooth"], *rows, *solved))
    put("cfrc_ext", rne_post(m, xfrc, *frames, *placed[:2], *contacts[1:], f["efc_active"], f["efc_force"]))
    pulled = (f["ten_length"], f["ten_velocity"], f["actuator_force"], f["efc_active"], f["efc_force"])
    put("cfrc_ext", tendon_forces(m, *bodies, f["subtree_com"], *geoms, *pulled, f["cfrc_ext"]))
    put("energy", energy(m, qpos, qvel, f["xipos"], f["ten_length"], f["qM"]))
    # sensors
    centres = (f["xipos"], f["ximat"], f["subtree_com"], f["cvel"])
    put("subtree_linvel subtree_angmom", subtree_vel(m, *centres))
    put("cacc_bias", acc_bias(m, qvel, f["cdof_dot"]))
    measured = (f["xipos"], f["subtree_com"], *geoms, f["ten_length"], f["actuator_length"])
    put("sensordata", sensor_pos(m, qpos, state.time, *bodies, *measured))
    momenta = (f["qM"], f["subtree_linvel"], f["subtree_angmom"])
    lengths = (f["ten_length"], f["ten_velocity"], f["actuator_velocity"])
    put(
        "sensordata",
        sensor_vel(m, qpos, qvel, *bodies, f["subtree_com"], f["cvel"], *momenta, *lengths, f["sensordata"]),
    )
    put("sensordata", sensor_distance(m, *geoms, f["sensordata"]))
    forces = (f["cacc_bias"], f["qacc"], f["cfrc_ext"])
    put("cacc cfrc_int", body_forces(m, f["cinert"], f["cdof"], f["cvel"], *forces))
    felt = (f["cacc"], f["cfrc_int"], f["actuator_force"], f["qfrc_actuator"])
    touching = (*contacts, f["efc_active"], f["efc_force"])
    put("sensordata", sensor_acc(m, *bodies, f["subtree_com"], f["cvel"], *felt, *touching, f["sensordata"]))
    return f


def _single_step(m: Any, state: State, ctrl: jax.Array) -> tuple[State, Fields]:
    f = _forward(m, state, ctrl)
    act = _activations(m, state)
    forces = (f["qfrc_smooth"], f["qfrc_constraint"])
    if m.opt_integrator in ("euler", "euler_general"):
        with_damping = euler if m.opt_integrator == "euler" else euler_general
        qpos, qvel = with_damping(m, f["qM"], f["qacc"], *forces, state.qpos, state.qvel)
    else:
        placed = (f["xipos"], f["ximat"], f["geom_xpos"], f["geom_xmat"], f["subtree_com"])
        names = "actuator_length actuator_velocity actuator_moment actuator_force qfrc_actuator"
        driven = (ctrl, act, f["act_dot"], *(f[name] for name in names.split()))
        step: Callable[..., Any] = implicit if m.opt_integrator == "implicit" else implicitfast
        of_velocity = (*placed, f["cinert"], f["cdof"], f["ten_J"], *driven)
        qpos, qvel = step(m, f["qM"], *forces, *of_velocity, state.qpos, state.qvel)
    act = advance_activation(m, act, f["act_dot"], f["actuator_length"])
    return _following(m, state, qpos, qvel, act, f["qacc"]), f


def _rk4_step(m: Any, state: State, ctrl: jax.Array) -> tuple[State, Fields]:
    qpos, qvel, act = state.qpos, state.qvel, _activations(m, state)
    forward = jax.jit(partial(_forward, m), inline=True)  # traced once, for the shapes and for the evaluations
    blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(forward, state, ctrl))

    def evaluate(carry: tuple[Any, ...], share: tuple[jax.Array, jax.Array]) -> tuple[tuple[Any, ...], Fields]:
        rate, f, mean_rate, mean_qacc, mean_act_dot = carry
        reach, weight = share
        at_qpos, at_qvel = rk4_point(m, qpos, qvel, rate, f["qacc"], reach)
        rate = rk4_rate(m, rate, reach, at_qvel)
        at_act = act + f["act_dot"] * (reach * float(m.opt_timestep))
        f = forward(state._replace(qpos=at_qpos, qvel=at_qvel, act=at_act), ctrl)
        means = (mean_rate + rate * weight, mean_qacc + f["qacc"] * weight, mean_act_dot + f["act_dot"] * weight)
        return (rate, f, *means), {name: f[name] for name in SENSED}

    shares = (jnp.asarray(REACH, qpos.dtype), jnp.asarray(WEIGHT, qpos.dtype))
    zero = jnp.zeros_like(qvel)
    start = (zero, blank, zero, zero, jnp.zeros_like(act))
    (_, f, rate, qacc, act_dot), sensed = jax.lax.scan(evaluate, start, shares)
    f |= {name: values[0] for name, values in sensed.items()}
    qpos, qvel = rk4_point(m, qpos, qvel, rate, qacc, 1.0)
    act = advance_activation(m, act, act_dot, f["actuator_length"])
    return _following(m, state, qpos, qvel, act, f["qacc"]), f | {"qacc": qacc}


def _activations(m: Any, state: State) -> jax.Array:
    return jnp.zeros(m.na, state.qpos.dtype) if state.act is None else state.act


def _following(m: Any, state: State, qpos: jax.Array, qvel: jax.Array, act: jax.Array, qacc: jax.Array) -> State:
    time = state.time + float(m.opt_timestep)
    kept = None if state.act is None and not m.na else act
    return state._replace(qpos=qpos, qvel=qvel, act=kept, qacc_warmstart=qacc, time=time)
