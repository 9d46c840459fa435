"""Commands that are killed at random moments, that run out of disk, or whose compiler fails."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.faults.outcome import Outcomes, finished, is_one_sentence, started

_RUN = ("run", "inverted_pendulum", "--backend", "host", "--worlds", "2")
BUILDING = (*_RUN, "--steps", "20")
TRAINING = (
    *("train", "inverted_pendulum_cpu", "--total-steps", "8192", "--num-envs", "8", "--rollout-steps", "64"),
    *("--checkpoint-every", "2", "--eval-episodes", "0"),
)

_ON = {"host": "", "cuda": " on a GPU"}


def run_on(backend: str) -> tuple[str, ...]:
    """A short run on a backend."""
    return tuple(backend if word == "host" else word for word in BUILDING)


def killed_building(folder: Path, trials: int, seed: int, backend: str = "host") -> Outcomes:
    """Kill a run and its compilers while kernels are built into an empty cache, and run it again."""
    out, rng = Outcomes("kill -9", f"building kernels{_ON[backend]}"), np.random.default_rng(seed)
    building = run_on(backend)
    whole, seconds = _whole(folder / "built", building, {"SIMENGINE_CACHE_DIR": str(folder / "built-cache")})
    for trial in range(trials):
        here = _fresh(folder / f"building-{trial}")
        own = {"SIMENGINE_CACHE_DIR": str(here / "cache")}
        _kill_after(rng.uniform(0.05, 0.8) * seconds, [*building, "--save", "run.npz"], here, own)
        _judge(out, here, [*building, "--save", "run.npz", "--resume"], "run.npz", whole, own)
    return out


def killed_saving(folder: Path, trials: int, seed: int, backend: str = "host") -> Outcomes:
    """Kill a run that records a trajectory, and let it go on."""
    out, rng = Outcomes("kill -9", f"run --save{_ON[backend]}"), np.random.default_rng(seed)
    saving = (*run_on(backend)[:-1], "6000", "--checkpoint", "0.05")
    _whole(folder / "warm", saving)
    whole, seconds = _whole(folder / "saved", saving)
    for trial in range(trials):
        here = _fresh(folder / f"saving-{trial}")
        _kill_after(rng.uniform(0.3, 1.0) * seconds, [*saving, "--save", "run.npz"], here)
        _judge(out, here, [*saving, "--save", "run.npz", "--resume"], "run.npz", whole)
    return out


def killed_training(folder: Path, trials: int, seed: int) -> Outcomes:
    """Kill a training, and resume it, or start it again where it had written nothing."""
    out, rng = Outcomes("kill -9", "train"), np.random.default_rng(seed)
    here, start = _fresh(folder / "trained"), time.monotonic()
    code, said = finished(started([*TRAINING, "--out", "out"], here))
    seconds = time.monotonic() - start
    if code:
        raise RuntimeError(f"the training fails without a fault: {said}")
    whole = (here / "out" / "policy.npz").read_bytes()
    for trial in range(trials):
        here = _fresh(folder / f"training-{trial}")
        _kill_after(rng.uniform(0.5, 1.0) * seconds, [*TRAINING, "--out", "out"], here)
        begun = list((here / "out" / "checkpoints").glob("*.npz"))
        if not begun:
            shutil.rmtree(here / "out", ignore_errors=True)
        again = ["train", "--resume", "out"] if begun else [*TRAINING, "--out", "out"]
        _judge(out, here, again, "out/policy.npz", whole)
    return out


def full_disk(folder: Path) -> Outcomes:
    """Let no file grow beyond a size: each command fails in a sentence, and what was there before is whole."""
    out = Outcomes("a full disk", "run --save, train")
    for most in (200, 5_000, 20_000):
        for name, arguments, file in (
            ("run", [*_RUN, "--steps", "400", "--save", "run.npz"], "run.npz"),
            ("train", [*TRAINING, "--out", "out"], "out/policy.npz"),
        ):
            here = _fresh(folder / f"full-{name}-{most}")
            code, said = finished(started(arguments, here, most_bytes=most))
            if code == 0 and (here / file).exists():
                out.harmless += 1
            elif code == 1 and is_one_sentence(said) and not (here / file).exists():
                out.found += 1
            else:
                out.wrong.append(f"{name}, {most} bytes: exit code {code}: {said[-300:]}")
    return out


def failing_compilers(folder: Path) -> Outcomes:
    """Compilers that do not answer, fail, write half a file and fail or die, or write no library and say nothing."""
    out = Outcomes("a compiler that fails", "building kernels")
    half = 'for a in "$@"; do [ "$last" = -o ] && out=$a; last=$a; done; head -c 900 > "$out"'
    scripts = {
        "fails": "exit 1",
        "fails half way": f"{half}; exit 1",
        "dies half way": f"{half}; kill -9 $$",
        "writes no library": f"{half}; exit 0",
    }
    chosen = {"does not answer": "false"}
    for name, script in scripts.items():
        path = folder / name.replace(" ", "-")
        path.write_text(f'#!/bin/bash\n[ "$1" = --version ] && echo fake 1.0 && exit 0\n{script}\n', encoding="utf-8")
        path.chmod(0o755)
        chosen[name] = str(path)
    for name, compiler in chosen.items():
        here = _fresh(folder / f"in-{name.replace(' ', '-')}")
        own = {"CXX": compiler, "SIMENGINE_CACHE_DIR": str(here / "cache")}
        code, said = finished(started([*BUILDING, "--save", "run.npz"], here, own))
        if code == 0:
            out.recovered += 1  # another compiler was found
        elif code == 1 and is_one_sentence(said) and not (here / "run.npz").exists():
            out.found += 1
        else:
            out.wrong.append(f"a compiler that {name}: exit code {code}: {said[-300:]}")
    return out


def _whole(here: Path, arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> tuple[bytes, float]:
    """The file of a run without a fault, and how long it takes."""
    _fresh(here)
    start = time.monotonic()
    code, said = finished(started([*arguments, "--save", "run.npz"], here, environment))
    if code:
        raise RuntimeError(f"the run fails without a fault: {said}")
    return (here / "run.npz").read_bytes(), time.monotonic() - start


def _kill_after(seconds: float, arguments: list[str], here: Path, environment: Mapping[str, str] | None = None) -> None:
    process = started(arguments, here, environment)
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _judge(
    out: Outcomes, here: Path, again: list[str], file: str, whole: bytes, environment: Mapping[str, str] | None = None
) -> None:
    """Run again, and compare the file."""
    if (here / file).exists() and (here / file).read_bytes() == whole:
        out.harmless += 1  # it had been complete
        return
    code, said = finished(started(again, here, environment))
    if code:
        out.wrong.append(f"{out.to}: exit code {code} afterwards: {said[-300:]}")
    elif (here / file).read_bytes() != whole:
        out.wrong.append(f"{out.to}: other bits afterwards")
    else:
        out.recovered += 1


def _fresh(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder
