"""Chains of matrix products as users of PyTorch and JAX write them: `python -m benchmarks.framework_peers --json FILE`.

The work is that of the list `products` (`simengine_scheduler.study.workloads.products`): in each step some chains take
part, each with some number of its products. Forms are drawn as there, and matrices anew, so results are not compared
with the list's, but with each other's. Times include the work of Python, as they do for executors.

    torch           PyTorch, operation by operation, on one stream
    torch, streams  the same with a stream for each chain
    jax             JAX, with a compiled function of a chain for each number of products
    streams         this scheduler's executor
    serial          one stream, as the others issue it

A library that is not installed, or has no GPU, is left out.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.stepping import document
from simengine.cli.results.result_file import write_json
from simengine.cli.simulations.workloads import make_workload
from simengine_scheduler import make_executor
from simengine_scheduler.study.specs import Spec

CHAINS, LENGTH, SIZE, BANDS = 8, 8, 128, 4

Due = Sequence[tuple[int, int]]
"""Chains that take part in a step, each with how many products it has."""

Way = tuple[Callable[[Due], None], Callable[[], np.ndarray]]
"""A step, and what returns the first matrices after the steps so far."""


def forms(steps: int, seed: int = 0) -> list[Due]:
    """The forms of steps, as `products` draws them."""
    draw, found = np.random.default_rng(seed), list[Due]()
    for _ in range(steps):
        lengths = draw.integers(1, LENGTH, CHAINS, endpoint=True).tolist()
        drawn = draw.random(CHAINS)
        present = np.flatnonzero(drawn <= max(0.75, drawn.min())).tolist()
        found.append([(chain, lengths[chain]) for chain in present])
    return found


def matrices(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """First matrices, (chains, size, size), and factors, (chains, length, bands, size, size).

    Even products multiply each band of rows by a factor of its own, odd ones by the first factor from the left.
    """
    draw = np.random.default_rng(seed)
    first = draw.uniform(-1, 1, (CHAINS, SIZE, SIZE)).astype(np.float32)
    factors = draw.uniform(-1, 1, (CHAINS, LENGTH, BANDS, SIZE, SIZE)) * 1.5 / np.sqrt(SIZE)
    return first, factors.astype(np.float32)


def in_torch(streams: bool, device: str = "cuda") -> Way:
    """The work in PyTorch. Raises ImportError if PyTorch or its GPU is missing."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise ImportError("PyTorch has no GPU")
    torch.set_float32_matmul_precision("highest")
    first, factors = (torch.tensor(array, device=device) for array in matrices())
    xs = [[first[c].clone(), *(torch.zeros_like(first[c]) for _ in range(LENGTH))] for c in range(CHAINS)]
    own = [torch.cuda.Stream() for _ in range(CHAINS)] if streams else []

    def products(chain: int, number: int) -> None:
        x = xs[chain]
        x[0].copy_(0.9 * (1 - 1.9 * x[0] * x[0]) + 0.1 * x[-1])
        for k in range(number):
            if k % 2:
                made = factors[chain, k, 0] @ x[k]
            else:
                made = torch.bmm(x[k].view(BANDS, -1, SIZE), factors[chain, k]).view(SIZE, SIZE)
            torch.clamp(made, -1, 1, out=x[k + 1])

    def step(due: Due) -> None:
        if not streams:
            for chain, number in due:
                products(chain, number)
            return
        home = torch.cuda.current_stream()
        for chain, number in due:
            own[chain].wait_stream(home)
            with torch.cuda.stream(own[chain]):
                products(chain, number)
            home.wait_stream(own[chain])

    return step, lambda: torch.stack([x[0] for x in xs]).cpu().numpy()


def in_jax(device: str = "gpu") -> Way:
    """The same in JAX."""
    import jax
    import jax.numpy as jnp

    try:
        place = jax.devices(device)[0]
    except RuntimeError as error:
        raise ImportError(f"JAX has no {device}") from error
    first, factors = (jax.device_put(array, place) for array in matrices())
    xs = [(first[c], *(jnp.zeros_like(first[c]) for _ in range(LENGTH))) for c in range(CHAINS)]
    of_chain = [factors[c] for c in range(CHAINS)]

    @partial(jax.jit, static_argnums=2)
    def products(x: tuple[Any, ...], own: Any, number: int) -> tuple[Any, ...]:
        made = [0.9 * (1 - 1.9 * x[0] * x[0]) + 0.1 * x[-1]]
        with jax.default_matmul_precision("highest"):
            for k in range(number):
                banded = made[k].reshape(BANDS, -1, SIZE)
                product = own[k, 0] @ made[k] if k % 2 else jnp.matmul(banded, own[k]).reshape(SIZE, SIZE)
                made.append(jnp.clip(product, -1, 1))
        return (*made, *x[number + 1 :])

    def step(due: Due) -> None:
        for chain, number in due:
            xs[chain] = products(xs[chain], of_chain[chain], number)

    return step, lambda: np.stack([np.asarray(x[0]) for x in xs])


def frameworks() -> dict[str, Way]:
    """The ways that can run here."""
    made: dict[str, Callable[[], Way]] = {
        "torch": partial(in_torch, False),
        "torch, streams": partial(in_torch, True),
        "jax": in_jax,
    }
    found = {}
    for name, make in made.items():
        try:
            found[name] = make()
        except ImportError as error:
            print(f"{name} is left out: {error}", flush=True)
    return found


def main() -> int:
    """Measure all ways in turns, and print and write the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--warmup", type=int, default=300)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    due = forms(args.warmup + args.steps * args.repeats)
    found = frameworks()
    workload = make_workload(Spec.parse("products"), "cuda")
    seconds: dict[str, list[float]] = {}
    for name, (step, wait) in found.items():
        for one in due[: args.warmup]:
            step(one)
        for repeat in range(args.repeats):
            wait()
            began = perf_counter()
            for one in due[args.warmup + repeat * args.steps :][: args.steps]:
                step(one)
            wait()
            seconds.setdefault(name, []).append(perf_counter() - began)
    for name in ("serial", "streams"):
        with make_executor(name, **workload.options, segments=workload.segments) as executor:
            workload.reset()
            workload.run(executor, args.warmup)
            for _ in range(args.repeats):
                executor.synchronize()
                began = perf_counter()
                workload.run(executor, args.steps)
                executor.synchronize()
                seconds.setdefault(name, []).append(perf_counter() - began)
    rows: list[dict[str, Any]] = []
    for name, own in seconds.items():
        us = [1e6 * one / args.steps for one in own]
        middle = statistics.median(us)
        rows.append({"way": name, "us_per_step": round(middle, 1), "spread": round((max(us) - min(us)) / middle, 2)})
        print(rows[-1], flush=True)
    write_json(document("benchmarks.framework_peers", rows), args.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
