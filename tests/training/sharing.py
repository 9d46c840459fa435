"""A training that processes share, for tests that start them: `python -m tests.training.sharing '{...}'`.

The argument is JSON with `folder`, `arguments`, and any of `processes` (several, of one device each), `index` and
`port` of this one, `resume`, `max_seconds`, `stop` (the update after which this process is interrupted) and `fail` (the
update after which it raises an error).
"""

from __future__ import annotations

import json
import sys
from typing import Any

import jax

from simengine_training import Arguments, resume, train
from simengine_training.curve import Row
from simengine_training.processes import use_cpu_collectives
from tests.training import point


def main(settings: dict[str, Any]) -> None:
    if "processes" in settings:
        use_cpu_collectives()
        jax.distributed.initialize(
            f"localhost:{settings['port']}",
            settings["processes"],
            settings["index"],
            cluster_detection_method="deactivate",
        )
    point.register()

    def on_row(row: Row) -> None:
        if row["update"] == settings.get("stop"):
            raise KeyboardInterrupt
        if row["update"] == settings.get("fail"):
            raise ValueError("a row cannot be shown")

    limit = settings.get("max_seconds")
    if settings.get("resume"):
        resume(settings["folder"], on_row, max_seconds=limit)
    else:
        train(Arguments(**settings["arguments"]), settings["folder"], on_row, max_seconds=limit)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
