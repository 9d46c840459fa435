"""The table of features: `python -m benchmarks.features peers` asks installed peers, `... table` writes the page."""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path

import mujoco

from benchmarks.features.engines import PEERS, refusal, version
from benchmarks.features.probes import PROBES
from benchmarks.features.table import PAGE, RESULTS, page
from simengine.cli.results.result_file import write_json


def ask_peers(out: Path) -> int:
    """Let every peer load every probe, and write the answers. Returns the exit code."""
    answers: dict[str, dict[str, str]] = {}
    versions = {"mujoco": mujoco.__version__}
    for name, (distribution, make) in PEERS.items():
        try:
            versions[name] = version(distribution)
            load = make()
        except ImportError as error:
            print(f"{name} is not installed ({error}); install {distribution} to ask it", file=sys.stderr)
            return 1
        answers[name] = {}
        for i, probe in enumerate(PROBES, start=1):
            print(f"\r{name}: {i} of {len(PROBES)}", end="", file=sys.stderr)
            answers[name][f"{probe.group}/{probe.feature}"] = refusal(load, probe.mjcf)
        print(file=sys.stderr)
    result = {
        "date": datetime.date.today().isoformat(),
        "command": "python -m benchmarks.features peers",
        "versions": versions,
        "refusals": answers,
    }
    write_json(result, out)
    return 0


def main() -> int:
    """Run the command, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.features", description=__doc__)
    parser.add_argument("what", choices=("peers", "table"))
    arguments = parser.parse_args()
    if arguments.what == "peers":
        return ask_peers(RESULTS)
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
