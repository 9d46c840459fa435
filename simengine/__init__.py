"""simengine: a batched rigid-body physics engine for reinforcement learning, with MuJoCo's physics.

import simengine

with simengine.Simulation("ant", num_worlds=4096) as sim:
    sim.step(10)
    print(sim.qpos.shape, sim.schedule.executor)

The modules of this folder are the public interface. In the order in which a program meets them:

    loading     find a model and let MuJoCo compile it
    simulation  `Simulation`, the worlds of one or several models
    arguments   check and convert what users pass in
    batch       the groups of a simulation, and how they advance together
    group       `Group`, the worlds of one model
    records     contacts and constraint rows as users see them
    functional  steps as pure functions of JAX, of one world or of many
    saved_state states of whole simulations, as arrays and as files
    schedule    `Schedule`, how steps become kernel calls and what runs them
    workload    a simulation as a workload, on which executors are measured
    arrays      types of the arrays that users pass and receive
    errors      exceptions
    jax_settings  what JAX reads when it starts
    registering registers environments with Gymnasium once a program imports it
    files       files that are replaced as a whole
    interrupts  Ctrl-C that waits until all worlds have made the same number of steps

Each subfolder has a docstring of its own that says what belongs there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simengine.arrays import Array, ArrayLike, to_host
from simengine.backends.select import available_backends
from simengine.errors import BackendError, ModelError, NonFiniteError, SimengineError, UnsupportedModelError
from simengine.group import Group
from simengine.jax_settings import set_defaults
from simengine.loading import load_model
from simengine.model import Model
from simengine.registering import register_with_gymnasium
from simengine.schedule import Schedule
from simengine.simulation import Simulation
from simengine.state.fields import WORLD_STATUS

if TYPE_CHECKING:
    from simengine.check import CheckReport, FieldResult, check_model
    from simengine.engines.jax_params import make_params
    from simengine.engines.jax_step import State
    from simengine.functional import contact_capacity, initial_state, make_forward, make_step
    from simengine.xla.params import make_batch_params
    from simengine.xla.state import BatchState

__version__ = "0.2.0"

__all__ = [
    "WORLD_STATUS",
    "Array",
    "ArrayLike",
    "BackendError",
    "BatchState",
    "CheckReport",
    "FieldResult",
    "Group",
    "Model",
    "ModelError",
    "NonFiniteError",
    "Schedule",
    "SimengineError",
    "Simulation",
    "State",
    "UnsupportedModelError",
    "available_backends",
    "check_model",
    "contact_capacity",
    "initial_state",
    "load_model",
    "make_batch_params",
    "make_forward",
    "make_params",
    "make_step",
    "to_host",
]


_ON_FIRST_USE = {
    "simengine.engines.jax_step": ("State",),
    "simengine.engines.jax_params": ("make_params",),
    "simengine.functional": ("contact_capacity", "initial_state", "make_forward", "make_step"),
    "simengine.xla.params": ("make_batch_params",),
    "simengine.xla.state": ("BatchState",),
    "simengine.check": ("CheckReport", "FieldResult", "check_model"),
}


def __getattr__(name: str) -> Any:
    """Import the functions that use JAX, and the check, on first use. Other programs need not wait for JAX to load."""
    for source, names in _ON_FIRST_USE.items():
        if name in names:
            import importlib

            module = importlib.import_module(source)
            globals().update({public: getattr(module, public) for public in names})
            return globals()[name]
    raise AttributeError(f"module 'simengine' has no attribute {name!r}")


set_defaults()
register_with_gymnasium()
