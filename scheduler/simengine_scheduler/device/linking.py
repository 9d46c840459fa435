"""Machine code of workers: bodies compiled by NVRTC one by one, linked and optimised by nvJitLink.

Compiling and linking need no GPU. Bodies are stored as intermediate code. All bodies of a worker are linked to machine
code together, because separate functions would put more on the stack and run a third longer. Linking a new set of
bodies takes some ten seconds, so the caller can store its result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from ..launch.tasks import DeviceBody

_HERE = Path(__file__).parent
_OPTIONS = ("--std=c++17", "--fmad=false", "-lineinfo", f"-I{_HERE}")
_LINK = ("-lto", "-fma=0", "-lineinfo")
_WHOLE_BLOCK = re.compile(r"\bbar(rier)?(\.cta|\.cluster)?\.(sync|red|arrive)\b|%ntid\b")
"""What asks for all threads of a block, in PTX."""
_REGISTERS = 65536  # registers of a multiprocessor
_SIGNATURE = 'extern "C" __device__ void {}(const unsigned long long*, int, char*);'

Keep = Callable[[str, Callable[[], bytes]], bytes]
"""Returns the bytes stored under a key, or else stores those that the function makes. It must be thread-safe."""


def _bindings(name: str) -> Any:
    try:
        return import_module(f"cuda.bindings.{name}")
    except ImportError as error:
        raise RuntimeError(
            f"executor 'device' builds its workers with cuda-bindings, whose {name} cannot be imported ({error}); "
            f"install simengine[cuda13] or simengine[cuda12], or choose executor 'graph-cached'"
        ) from error


def compile_body(source: str, name: str, arch: int, options: Sequence[str] = ()) -> bytes:
    """Compile a source with the device function `name` to intermediate code, for `DeviceBody.code`.

    Args:
        source: CUDA C++ text.
        arch: architecture such as 90.
        options: further options of NVRTC.

    Raises:
        RuntimeError: NVRTC is not installed, or it refused the source.
    """
    return _compile(source, f"{name}.cu", arch, options)


def _compile(source: str, name: str, arch: int, options: Sequence[str]) -> bytes:
    nvrtc = _bindings("nvrtc")
    flags = [f"--gpu-architecture=sm_{arch}", "-dlto", "--relocatable-device-code=true", *_OPTIONS, *options]
    program = _checked(nvrtc.nvrtcCreateProgram(source.encode(), name.encode(), 0, [], []))
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, len(flags), [flag.encode() for flag in flags])
        if int(status) != 0:
            log = b" " * _checked(nvrtc.nvrtcGetProgramLogSize(program))
            nvrtc.nvrtcGetProgramLog(program, log)
            first = next((line for line in log.decode().splitlines() if "error" in line), status.name)
            raise RuntimeError(f"NVRTC could not compile {name} for sm_{arch}: {first}")
        code = b" " * _checked(nvrtc.nvrtcGetLTOIRSize(program))
        _checked(nvrtc.nvrtcGetLTOIR(program, code))
        return code
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _checked(result: tuple[Any, ...]) -> Any:
    if int(result[0]) != 0:
        raise RuntimeError(f"NVRTC reports {result[0].name}")
    return result[1] if len(result) > 1 else None


def code_of(body: DeviceBody) -> bytes:
    """Return the intermediate code of a body. Code that is a function is called."""
    return body.code() if callable(body.code) else body.code


@cache
def management(arch: int) -> bytes:
    """Return the machine code of `reset` and `window`."""
    return _link({"window": _compile((_HERE / "worker.cu").read_text(), "window.cu", arch, ())}, arch)


def worker_source(
    bodies: Sequence[DeviceBody],
    threads: int,
    registers: int,
    merged: bool = False,
    ready: bool = False,
    known: bool = False,
) -> str:
    """Return the source of the worker that runs bodies by their numbers.

    Args:
        bodies, threads, registers: of the worker.
        merged: whether the worker has all bodies of a list, and one of its blocks is the window if there is one.
        ready: whether blocks take tickets of any ready task.
        known: whether the host knows what calls wait for, so that there is no window.
    """
    return "\n".join(
        [
            f"#define THREADS {threads}",
            f"#define BLOCKS {max(1, _REGISTERS // (threads * (registers + 1)))}",
            *(["#define WITH_WINDOW"] if merged and not known else []),
            *(["#define ANY_READY"] if ready else []),
            *(["#define KNOWN"] if known else []),
            _run_body(bodies, threads),
            "#define RUN_BODY run_body",
            (_HERE / "worker.cu").read_text(),
        ]
    )


def _run_body(bodies: Sequence[DeviceBody], threads: int) -> str:
    """Return the function that runs a body by its number, with the first threads of the block if it needs fewer."""
    cases = []
    for i, body in enumerate(bodies):
        only = f"if (threadIdx.x < {body.threads}) " if body.threads < threads else ""
        cases.append(f"    case {i}: {only}{body.name}(arguments, tile, memory); break;")
    return "\n".join(
        [
            *(_SIGNATURE.format(body.name) for body in bodies),
            "static __device__ __forceinline__ void run_body(",
            "    int body, const unsigned long long* arguments, int tile, char* memory) {",
            "  switch (body) {",
            *cases,
            "  }",
            "}",
        ]
    )


def refuse_whole_blocks(bodies: Sequence[DeviceBody], threads: int, arch: int, keep: Keep) -> None:
    """Raise ValueError if a body of fewer threads than its block waits for all of them, or reads their number."""
    fewer = [body for body in bodies if body.threads < threads]
    if not fewer or not _asks_for_block(fewer, arch, keep):
        return
    while len(fewer) > 1:  # each look links
        half = fewer[: len(fewer) // 2]
        fewer = half if _asks_for_block(half, arch, keep) else fewer[len(half) :]
    body = fewer[0]
    raise ValueError(
        f"executor option merged=True cannot run body {body.name!r} of {body.threads} threads in blocks of {threads}, "
        f"since it waits for all threads of its block or asks how many there are; give all bodies of the list "
        f"{threads} threads, or choose merged=False"
    )


def _asks_for_block(bodies: Sequence[DeviceBody], arch: int, keep: Keep) -> bool:
    """Whether bodies have a barrier of the block or read its size. They are linked into a kernel that does neither."""
    source = "\n".join(
        [
            _run_body(bodies, 32),
            'extern "C" __global__ void probe(int body, const unsigned long long* arguments, int tile, char* memory) {',
            "  run_body(body, arguments, tile, memory);",
            "}",
        ]
    )
    parts = {body.name: code_of(body) for body in bodies}

    def look() -> bytes:
        code = _link({"probe": _compile(source, "probe.cu", arch, ()), **parts}, arch, as_text=True)
        return b"yes" if _WHOLE_BLOCK.search(code.decode()) else b"no"

    return keep(f"block-{_key(source + _WHOLE_BLOCK.pattern, parts, arch)}.txt", look) == b"yes"


def link_worker(
    bodies: Sequence[DeviceBody],
    threads: int,
    registers: int,
    arch: int,
    keep: Keep,
    merged: bool = False,
    ready: bool = False,
    known: bool = False,
) -> bytes:
    """Return the machine code of a worker; see `worker_source`.

    Raises:
        RuntimeError: NVRTC or nvJitLink is not installed, or a body is missing or defined twice.
    """
    source = worker_source(bodies, threads, registers, merged, ready, known)
    parts = {body.name: code_of(body) for body in bodies}
    return keep(f"worker-{_key(source, parts, arch)}.cubin", lambda: _link_with(source, parts, arch))


def _key(source: str, parts: dict[str, bytes], arch: int) -> str:
    key = sha256(source.encode())
    for header in ("portable.cuh", "protocol.cuh", "ready.cuh", "known.cuh"):
        key.update((_HERE / header).read_bytes())
    for part in (str((arch, _bindings("nvjitlink").version(), _LINK)).encode(), *parts.values()):
        key.update(sha256(part).digest())
    return key.hexdigest()[:32]


def _link_with(source: str, parts: dict[str, bytes], arch: int) -> bytes:
    return _link({"worker": _compile(source, "worker.cu", arch, ()), **parts}, arch)


def _link(parts: dict[str, bytes], arch: int, as_text: bool = False) -> bytes:
    """Link parts. Returns machine code, or PTX as text."""
    nvjitlink = _bindings("nvjitlink")
    options = [f"-arch=sm_{arch}", *_LINK, *(["-ptx"] if as_text else [])]
    linker = nvjitlink.create(len(options), options)
    try:
        for name, code in parts.items():
            nvjitlink.add_data(linker, nvjitlink.InputType.LTOIR, code, len(code), name)
        nvjitlink.complete(linker)
        kind = "ptx" if as_text else "cubin"
        linked = bytearray(getattr(nvjitlink, f"get_linked_{kind}_size")(linker))
        getattr(nvjitlink, f"get_linked_{kind}")(linker, linked)
    except nvjitlink.nvJitLinkError as error:
        log = bytearray(nvjitlink.get_error_log_size(linker))
        nvjitlink.get_error_log(linker, log)
        why = log.decode(errors="replace").strip("\0 \n").splitlines()
        raise RuntimeError(f"nvJitLink could not link {', '.join(parts)}: {' '.join(why[:1]) or error}") from error
    finally:
        nvjitlink.destroy(linker)
    return bytes(linked)
