"""Ctrl-C in a long run stops all worlds after the same number of steps, soon, and the simulation goes on from there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import numpy as np
import pytest

import simengine
from simengine.interrupts import Deferred

WORLDS = 200


@pytest.fixture(autouse=True)
def _interrupts_arrive() -> Iterator[None]:
    """A program that a shell starts in the background ignores Ctrl-C, and would run its ten million steps."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("backend", "options"),
    [("host", {"executor": "serial"}), ("host", {"executor": "threads", "shards": 3}), ("host", {}), ("jax", {})],
)
def test_worlds_stop_together(backend: str, options: dict[str, object]) -> None:
    model = "ant" if backend == "host" else "inverted_pendulum"  # which JAX compiles sooner
    with simengine.Simulation(model, WORLDS, backend=backend, **options) as sim:
        sim.step(3)
        Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        began = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            sim.step(10**7)
        assert time.perf_counter() - began < 20
        steps = np.array(sim.field("nstep"))
        assert 3 < steps[0] < 10**7
        assert (steps == steps[0]).all()
        again = sim.copy()
        sim.step(2)
        assert np.asarray(sim.field("nstep")).tolist() == [steps[0] + 2] * WORLDS
        again.step(2)
        np.testing.assert_array_equal(np.asarray(again.qpos), np.asarray(sim.qpos))
        again.close()


def test_pieces_of_a_run_have_the_bits_of_one_run_and_its_controls() -> None:
    rng = np.random.default_rng(0)
    controls = rng.uniform(-1, 1, size=(600, 2, 8)).astype(np.float32)
    with simengine.Simulation("ant", 2, keep=["xpos"]) as whole, simengine.Simulation("ant", 2) as single:
        whole.step(600, controls)
        for control in controls:
            single.step(1, control)
        np.testing.assert_array_equal(np.asarray(whole.qpos), np.asarray(single.qpos))
        assert np.isfinite(np.asarray(whole.field("xpos"))).all()


def test_a_second_interrupt_acts_at_once() -> None:
    with Deferred() as deferred:
        signal.raise_signal(signal.SIGINT)
        assert deferred.arrived
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        deferred.arrived = False
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_the_program_stays() -> None:
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        with Deferred() as deferred:
            signal.raise_signal(signal.SIGINT)
        assert (seen, deferred.arrived) == ([1], False)
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_error_in_the_block_is_not_replaced() -> None:
    def fail() -> None:
        with Deferred():
            signal.raise_signal(signal.SIGINT)
            raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        fail()


def test_a_program_ends_by_ctrl_c(tmp_path: Path) -> None:
    program = "import simengine\nsim = simengine.Simulation('ant', 8)\nprint('runs', flush=True)\nsim.step(10**9)\n"
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "runs\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30)[1].rstrip().endswith("KeyboardInterrupt")
