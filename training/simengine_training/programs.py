"""The compiled programs of a training: the first worlds, an iteration, and an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from threading import Lock
from typing import Any

import jax
import numpy as np

from simengine_envs import PureEnv, device_of
from simengine_training.arguments import Arguments
from simengine_training.compiling import compiled
from simengine_training.devices import mesh_of, same_on, worlds_over
from simengine_training.iteration import Report, TrainState, make_first_worlds, make_iteration
from simengine_training.memories import made_ahead
from simengine_training.network import Network
from simengine_training.numpy_policy import NumpyPolicy
from simengine_training.ppo import first_learner
from simengine_training.processes import is_first, on_own_device, placed, wait_for_all
from simengine_training.statistics import LIMIT
from simengine_training.trial import Trial, make_trial
from simengine_training.worlds import environment_of, seeds_of

_THREADS = 8


class Programs:
    """The programs of a training. They are traced one after the other, and compiled at once in threads of their own.

    Args:
        arguments: arguments of the training.

    Attributes:
        env: the environment.
        network: the network.
        shapes: shapes and types of the whole state.

    Raises:
        TrainingError: the environment cannot be made, or there are too few devices.
    """

    def __init__(self, arguments: Arguments):
        self.arguments = arguments
        self.env = environment_of(arguments.env_id, arguments.env_arguments)
        self.device = device_of(self.env.backend)
        self.mesh = mesh_of(self.device, arguments.devices)
        self._pool, self._tracing = ThreadPoolExecutor(_THREADS, "compile"), Lock()
        memories = [] if self.mesh else made_ahead(self.env, arguments.num_envs, self._pool)
        trial: PureEnv | None = None
        if arguments.eval_episodes and is_first():
            trial = environment_of(arguments.env_id, arguments.env_arguments, autoreset=False)
            memories += [] if self.mesh else made_ahead(trial, arguments.eval_episodes, self._pool)
        with self.scope():
            self._seeds = seeds_of(arguments.seed, 0, arguments.num_envs)
            first = make_first_worlds(self.env, arguments, self.mesh)
            worlds = jax.eval_shape(first, self._seeds)
            sizes = worlds.observation.shape[1], self.env.action_size
            self.network = Network(*sizes, arguments.hidden_sizes, arguments.activation)
            learner = jax.eval_shape(lambda: first_learner(arguments, self.network))
            self.shapes = TrainState(learner, worlds)
        iteration = make_iteration(self.env, self.network, arguments, self.mesh)
        self._iteration = self._compiled(
            iteration,
            self._placed(self.shapes),
            donate_argnums=0,
            out_shardings=(TrainState(self._same, self._split), self._same),
        )
        self._first = self._compiled(
            first, jax.ShapeDtypeStruct(self._seeds.shape, np.uint32, sharding=self._split), out_shardings=self._split
        )
        self._trial = None if trial is None else self._compile_trial(trial)
        self._work = [*memories, self._iteration, self._first, *([self._trial] if self._trial else [])]

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Run on the environment's device, with 64-bit numbers if its precision needs them."""
        with jax.default_device(self.device), jax.enable_x64(self.env.dtype == "float64"):
            yield

    def first_state(self) -> TrainState:
        """The state before the first update."""
        with self.scope():
            learner = first_learner(self.arguments, self.network)
            seeds = placed(self._seeds, self._split)
            self._wait()
            return TrainState(placed(learner, self._same), self._first.result()(seeds))

    def on_devices(self, state: TrainState) -> TrainState:
        """A state that was read from a file."""
        with self.scope():
            return TrainState(placed(state.learner, self._same), placed(state.worlds, self._split))

    def iterate(self, state: TrainState) -> tuple[TrainState, Report]:
        """Do one iteration. The state that it is given is used up."""
        with self.scope():
            self._wait()
            found: tuple[TrainState, Report] = self._shared_iteration(state)
            return found

    def evaluate(self, state: TrainState) -> Trial:
        """Run whole episodes under the most likely actions on this process' first device, as arrays of NumPy."""
        assert self._trial is not None, "the arguments ask for no evaluation, or another process does it"
        with self.scope():
            learner = on_own_device((state.learner.params, state.learner.observations))
            self._wait()
            found: Trial = jax.device_get(self._trial.result()(*learner, self._trial_seeds))
            return found

    def policy(self, state: TrainState) -> NumpyPolicy:
        """The policy of a state, on the host."""
        learner, arguments = jax.device_get(state.learner), self.arguments
        low, high = self.env.action_range()
        return NumpyPolicy(
            environment=arguments.env_id,
            mean=learner.observations.mean,
            deviation=np.sqrt(learner.observations.var + np.float32(1e-8)),
            limit=LIMIT,
            activation=arguments.activation,
            weights=tuple(layer.weights for layer in learner.params.actor),
            biases=tuple(layer.biases for layer in learner.params.actor),
            low=np.asarray(low, np.float32),
            high=np.asarray(high, np.float32),
        )

    def _wait(self) -> None:
        """Wait until no thread compiles programs or makes memory.

        XLA captures CUDA graphs when a program runs for the first time. A capture fails if another thread makes memory
        on that GPU.
        """
        for work in self._work:
            work.result()

    def _compile_trial(self, env: PureEnv) -> Future[Any]:
        self._trial_seeds = seeds_of(self.arguments.seed, 1, self.arguments.eval_episodes)
        learner = self.shapes.learner
        run = make_trial(env, self.network)
        return self._compiled(run, learner.params, learner.observations, self._trial_seeds)

    def _compiled(self, function: Callable[..., Any], *inputs: Any, **options: Any) -> Future[Any]:
        """Trace and compile a function in a thread.

        Python runs in one thread at a time, so the program that was asked for first is traced first: the iteration,
        which takes longest to compile.
        """

        def compile_() -> Any:
            with self.scope():
                with self._tracing:
                    lowered = jax.jit(function, **options).lower(*inputs)
                return compiled(lowered, self.device)

        return self._pool.submit(compile_)

    @cached_property
    def _shared_iteration(self) -> Any:
        """The compiled iteration, once all processes have compiled it."""
        program = self._iteration.result()
        wait_for_all()
        return program

    @cached_property
    def _split(self) -> Any:
        return self._single if self.mesh is None else worlds_over(self.mesh)

    @cached_property
    def _same(self) -> Any:
        return self._single if self.mesh is None else same_on(self.mesh)

    @cached_property
    def _single(self) -> Any:
        return jax.sharding.SingleDeviceSharding(self.device)

    def _placed(self, state: TrainState) -> TrainState:
        """Shapes, types and places of a state."""

        def on(sharding: Any, tree: Any) -> Any:
            return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), tree)

        return TrainState(on(self._same, state.learner), on(self._split, state.worlds))
