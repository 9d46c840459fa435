"""A program that ends while XLA still steps: it ends at once, and no thread waits for Python for ever."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Several runs at once need more memory than one, which their first calls ask Python for. The results of all but one are
# dropped, so that nothing can wait for them. XLA runs a program without matrices in the thread that asks for it.
PROGRAM = """
import sys
import jax, jax.numpy as jnp, simengine
from simengine.errors import BackendError
from simengine.xla import library

def compiler():
    raise BackendError("there is none")

if sys.argv[1] == "python":
    library.compiler = compiler
model = simengine.load_model("ant")
step = simengine.make_step(model, backend="host")
state = simengine.initial_state(model, num_worlds=8)
ctrl = jnp.zeros((8, model.nu))


def body(carry, _):
    state, matrix = carry
    return (step(state, ctrl), jnp.sin(matrix @ matrix)), None


run = jax.jit(lambda carry: jax.lax.scan(body, carry, None, length=1_000_000)[0])
kept = [run((state, jnp.eye(64))) for _ in range(int(sys.argv[2]))]
del kept[1:]
print("ends")
"""


@pytest.mark.parametrize("times", [1, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("handlers", "runs"), [("compiled", 3), ("python", 1)])
def test_program_that_ends_while_it_steps_ends_at_once(handlers: str, runs: int, times: int) -> None:
    for _ in range(times):
        command = [sys.executable, "-c", PROGRAM, handlers, str(runs)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
        assert answer.stdout == "ends\n", answer.stderr
        assert answer.returncode == 0, answer.stderr
