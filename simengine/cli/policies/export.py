"""`simengine export`: a policy as files for machines without simengine."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

from rich.table import Table

from simengine.cli.options.errors import UsageError
from simengine.cli.policies.trained import FILE, SUMMARY, TrainedPolicy, add_policy_argument, read_policy
from simengine.cli.results.output import console
from simengine.cli.results.result_file import as_json
from simengine_training import numpy_policy
from simengine_training.errors import MissingExtraError

FORMATS = ("numpy", "onnx")


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "export",
        help="write a policy as NumPy and ONNX files",
        description=f"numpy: {FILE} and policy.py, which reads it and needs NumPy alone. onnx: policy.onnx, from "
        "observations to actions within their limits.",
    )
    add_policy_argument(parser, steps=False)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="folder for the files")
    parser.add_argument(
        "--format", nargs="+", choices=FORMATS, default=list(FORMATS), help=f"default: {' '.join(FORMATS)}"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    trained = read_policy(options.run, steps=False)
    write_onnx = _onnx_writer() if "onnx" in options.format else None
    options.out.mkdir(parents=True, exist_ok=True)
    written = _write_numpy(trained, options.out) if "numpy" in options.format else []
    if write_onnx:
        write_onnx(trained.policy, options.out / "policy.onnx")
        written.append("policy.onnx")
    sizes = {"observation_size": trained.policy.mean.size, "action_size": trained.policy.low.size}
    if options.json:
        print(as_json({"policy": str(trained.path), "env_id": trained.env_id, **sizes, "files": written}))
        return 0
    table = Table(title=f"policy of {trained.env_id}", show_header=False)
    table.add_row("observation", f"{sizes['observation_size']} numbers")
    table.add_row("action", f"{sizes['action_size']} numbers")
    table.add_row(f"written to {options.out}", ", ".join(written))
    console().print(table)
    return 0


def _onnx_writer() -> Any:
    """The function that writes ONNX files, before anything is written. Raises UsageError without its package."""
    try:
        from simengine_training.onnx_export import write_onnx
    except MissingExtraError as error:
        raise UsageError(f"{error}, or give --format numpy") from error
    return write_onnx


def _write_numpy(trained: TrainedPolicy, folder: Path) -> list[str]:
    """Write the NumPy files, and the summary that lies beside the policy, and return their names."""
    trained.policy.save(folder / FILE)
    shutil.copyfile(numpy_policy.__file__, folder / "policy.py")
    summary = trained.path.with_name(SUMMARY)
    if not summary.is_file():
        return [FILE, "policy.py"]
    if summary.resolve() != (folder / SUMMARY).resolve():
        shutil.copyfile(summary, folder / SUMMARY)
    return [FILE, "policy.py", SUMMARY]
