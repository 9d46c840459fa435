"""The child process: `python -m simengine.fuzz.worker` judges the models that its parent sends, one after another.

Each line of its input is a JSON object with the arguments of `judge`, and `alone`, with which MuJoCo runs without the
engine. Each line of its output is an outcome. What libraries print goes to the standard error stream.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from typing import Any

import mujoco

from simengine.fuzz.judge import Outcome, draw_alone, judge

MEMORY = 8 << 30  # bytes of addresses, beyond which a model fails by itself and takes nothing from others


def main() -> None:
    """Serve until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    mujoco.set_mju_user_warning(lambda _: None)
    for line in sys.stdin:
        request = json.loads(line)
        if request["backend"] == "host":
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        print(json.dumps(_answer(request)), file=answers, flush=True)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    work = draw_alone if request.pop("alone") else judge
    try:
        return work(**request).as_dict()
    except Exception as error:
        where = error.__traceback__
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        file = os.path.basename(where.tb_frame.f_code.co_filename) if where else "nowhere"
        name = where.tb_frame.f_code.co_name if where else "nothing"
        sentence = " ".join(str(error).split())[:300]
        return Outcome("raises", [f"{type(error).__name__} in {name} of {file}: {sentence}"]).as_dict()


if __name__ == "__main__":
    main()
