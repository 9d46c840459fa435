"""Step 64 ants with executor `device`, one launch a step, for checkers that run one kernel at a time:

    python -m tests.scheduler.device.step    # run once before, so that linked programs are in the cache
    compute-sanitizer --tool memcheck  python -m tests.scheduler.device.step
    compute-sanitizer --tool racecheck python -m tests.scheduler.device.step

The exit status is 1 if the state differs from that of executor `serial`. With --times it prints the time that the
window spends on a call. With --window it checks hazards on the device. With --classes a list has a launch for each
resource class, and one for the window if there is one.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from simengine import Simulation
from simengine_scheduler.tracing.events import Counters
from tests.emission.worlds import ant, ant_start
from tests.gpu.compare import state_bits


def simulation(worlds: int, executor: str, options: dict[str, Any]) -> Simulation:
    """Ants, some of which touch the floor. Their steps are issued ahead of counts."""
    sim = Simulation(ant(), worlds, backend="cuda", executor=executor, emission="ahead", executor_options=options)
    start = ant_start(worlds)
    sim.set_state(qpos=start.qpos, qvel=start.qvel)
    return sim


def state_after(worlds: int, steps: int, executor: str, options: dict[str, Any]) -> dict[str, bytes]:
    """The bits of the state after some steps."""
    sim = simulation(worlds, executor, options)
    sim.step(steps)
    sim.synchronize()
    bits = state_bits(sim)
    sim.close()
    return bits


def counters_of(worlds: int, steps: int, options: dict[str, Any]) -> list[Counters]:
    """Counters of recorded steps, after one step that is not recorded."""
    sim = simulation(worlds, "device", options)
    sim.step()
    found = [sim.schedule.trace_step().counters for _ in range(steps)]
    sim.close()
    return found


def main() -> int:
    """Run the steps and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=64)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--watchdog", type=float, default=600.0, help="seconds that a call may wait")
    parser.add_argument("--classes", action="store_true", help="launches for the window and each resource class")
    parser.add_argument("--window", action="store_true", help="check hazards on the device")
    parser.add_argument("--times", action="store_true", help="tell what the window spends on a call")
    args = parser.parse_args()
    hazards = "device" if args.window or args.times else "host"
    options = {"merged": not args.classes, "watchdog": args.watchdog, "hazards": hazards}
    if args.times:
        for i, of in enumerate(counters_of(args.worlds, args.steps, options)):
            admitted, compared = (1e9 * seconds / of.calls for seconds in (of.check_seconds, of.compare_seconds))
            print(f"step {i}: {of.calls} calls, {admitted:.0f} ns to admit one, of which {compared:.0f} ns to compare")
    ours, wanted = (state_after(args.worlds, args.steps, *of) for of in (("device", options), ("serial", {})))
    same = ours == wanted
    print(f"{args.steps} steps of {args.worlds} ants leave {'the bits' if same else 'OTHER BITS than those'} of serial")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
