"""Evolve bodies and controllers together: every generation is one batch of different robots.

    python examples/evolve.py --population 24 --generations 20 --plot evolution.png

Each robot of the population is a model of its own, with its own number of joints; all of them are stepped together,
some worlds each. A controller lets every motor follow a sine wave. Fitness is how far a robot gets along x, averaged
over its worlds, which start with small random velocities. The best quarter goes on and has mutants for offspring.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.progress import track

import simengine
from simengine.zoo import Robot

TIMESTEP = 0.005  # [s]
CONTROL_EVERY = 4  # steps


@dataclass(frozen=True)
class Individual:
    """A body, and a wave for each of its motors by name: amplitude, phase [rad]; one frequency for all [Hz]."""

    robot: Robot
    frequency: float
    waves: dict[str, tuple[float, float]]

    def controls(self, motors: list[str], time: float) -> np.ndarray:
        """Controls of the motors at a time [s]."""
        waves = np.array([self.waves[name] for name in motors])
        return waves[:, 0] * np.sin(2 * np.pi * self.frequency * time + waves[:, 1])


def load(robot: Robot) -> simengine.Model:
    """The robot as a model."""
    return simengine.load_model(robot.mjcf(timestep=TIMESTEP))


def motors_of(model: simengine.Model) -> list[str]:
    """Names of the motors."""
    return [model.mj.actuator(u).name for u in range(model.nu)]


def born(robot: Robot, rng: np.random.Generator, parent: Individual | None = None) -> Individual:
    """An individual with this body: waves of the parent's motors are inherited with changes, others are new."""
    old = parent.waves if parent else {}
    waves = {}
    for name in motors_of(load(robot)):
        amplitude, phase = old.get(name, (rng.uniform(0.2, 1.0), rng.uniform(0, 2 * np.pi)))
        if name in old:
            amplitude = float(np.clip(amplitude + 0.1 * rng.normal(), -1, 1))
            phase += 0.3 * rng.normal()
        waves[name] = (amplitude, phase)
    frequency = parent.frequency * np.exp(0.1 * rng.normal()) if parent else rng.uniform(0.8, 2.5)
    return Individual(robot, float(np.clip(frequency, 0.3, 5.0)), waves)


def fitness(population: list[Individual], worlds: int, seconds: float, backend: str, seed: int) -> np.ndarray:
    """How far along x each individual gets [m]; robots that leave the numbers count as staying where they were."""
    models = [load(individual.robot) for individual in population]
    motors = [motors_of(model) for model in models]
    sim = simengine.Simulation([(m, worlds) for m in models], backend=backend, on_nonfinite="freeze")
    rng = np.random.default_rng(seed)
    for group in sim.groups:
        group.set_state(qvel=0.01 * rng.normal(size=(worlds, group.model.nv)))
    for step in range(0, round(seconds / TIMESTEP), CONTROL_EVERY):
        for group, individual, names in zip(sim.groups, population, motors, strict=True):
            group.set_state(ctrl=individual.controls(names, step * TIMESTEP))
        sim.step(CONTROL_EVERY)
    reached = np.array([np.mean(np.nan_to_num(group.to_host(group.qpos)[:, 0])) for group in sim.groups])
    sim.close()
    return reached


def next_generation(population: list[Individual], reached: np.ndarray, rng: np.random.Generator) -> list[Individual]:
    """The best quarter, and mutants of it."""
    order = np.argsort(-reached)
    parents = [population[i] for i in order[: max(1, len(population) // 4)]]
    children: list[Individual] = []
    while len(parents) + len(children) < len(population):
        parent = parents[int(rng.integers(len(parents)))]
        robot = parent.robot.mutated(rng) if rng.random() < 0.5 else parent.robot
        children.append(born(robot, rng, parent))
    return parents + children


def plot(path: Path, history: list[dict[str, float]]) -> None:
    """Draw best and mean fitness of every generation."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name in ("best", "mean"):
        axes.plot([row["generation"] for row in history], [row[name] for row in history], label=name)
    axes.set(xlabel="generation", ylabel="distance along x [m]", title="Bodies and controllers evolved together")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)


def evolve(args: argparse.Namespace) -> tuple[Individual, list[dict[str, float]]]:
    """Run the generations; returns the best of the last one, and best and mean of each."""
    rng = np.random.default_rng(args.seed)
    population = [born(Robot.random(rng), rng) for _ in range(args.population)]
    history: list[dict[str, float]] = []
    reached = np.zeros(0)
    for generation in track(range(args.generations), "generations", disable=args.json):
        if generation:
            population = next_generation(population, reached, rng)
        reached = fitness(population, args.worlds, args.seconds, args.backend, args.seed + generation)
        history.append({"generation": generation, "best": float(reached.max()), "mean": float(reached.mean())})
        if not args.json:
            print(f"generation {generation}: best {reached.max():.2f} m, mean {reached.mean():.2f} m")
    return population[int(np.argmax(reached))], history


def main() -> int:
    """Evolve, and write what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--population", type=int, default=24)
    parser.add_argument("--generations", type=int, default=20)
    parser.add_argument("--worlds", type=int, default=4, help="worlds of each robot")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of a life")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print the history as JSON and nothing else")
    parser.add_argument("--plot", type=Path, help="write a picture of the history here")
    parser.add_argument("--save", type=Path, help="write the best robot's MJCF here")
    args = parser.parse_args()
    if min(args.population, args.generations, args.worlds) < 1 or args.seconds <= 0:
        parser.error("population, generations and worlds must be at least 1, and seconds positive")
    best, history = evolve(args)
    if args.plot:
        plot(args.plot, history)
    if args.save:
        args.save.write_text(best.robot.mjcf(timestep=TIMESTEP))
    if args.json:
        print(json.dumps({"history": history, "motors": best.robot.num_actuators}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
