"""Which kernels ran, and which never did."""

from __future__ import annotations

from benchmarks.every_kernel.runs import Runs
from simengine.plan import catalogue
from simengine.plan.every_kernel import all_kernels
from simengine.state.fields import ROW_CLASSES

LEAN = frozenset(
    catalogue.finish(integrator, "solve_newton_unilateral", False).name for integrator in ("", "euler", "rk4")
)


def expected() -> list[str]:
    """Names of the calls that must have run: every kernel of the catalogue.

    A lean `finish` must run once for each size class of the solver; the others in one.
    """
    names = []
    for kernel in all_kernels():
        if kernel.name.startswith("finish") and not kernel.name.endswith("_arena") and kernel.name in LEAN:
            names += [f"{kernel.name}_{bound}" for bound in ROW_CLASSES[1:]]
        else:
            names.append(kernel.name)
    return names


def report(runs: Runs) -> list[str]:
    """Print how often each call ran for each kind of group; returns those that never ran."""
    kinds = list(dict.fromkeys(kind for _, kind in runs))
    print(f"{'kernel':28s}" + "".join(f"{kind:>20s}" for kind in kinds))
    names = {name for name, _ in runs}
    for name in sorted(names):
        print(f"{name:28s}" + "".join(f"{runs[name, kind]:20d}" for kind in kinds))
    # a kernel with rows in scratch has the bound of their number in its calls' names
    return [f"{n} never ran" for n in expected() if not any(name == n or name.startswith(f"{n}_") for name in names)]
