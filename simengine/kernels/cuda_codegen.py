"""Source text of a kernel for CUDA, and of a body for workers of the executor `device`."""

from __future__ import annotations

from simengine.kernels.kernel import Kernel
from simengine.kernels.signatures import parameters, unpacked
from simengine.kernels.sources import source_of
from simengine.kernels.world_codegen import beyond, from_queue, slot_of, unit_of, world_function

_IN_GLOBAL = """
// The same address, which the compiler then knows to be one of global memory. It knows so of a kernel's own arguments,
// but not of those that workers read from memory, whose loads and stores would serve any memory and take longer.
template <typename T>
DEVICE T* in_global(T* p) {
  size_t address = __cvta_generic_to_global(p);
  asm("" : "+l"(address));  // or else the compiler finds that nothing changes, and forgets it
  return static_cast<T*>(__cvta_global_to_generic(address));
}
"""


def kernel_source(kernel: Kernel, target: str) -> str:
    """Complete source of a kernel for "cuda" or "task", which is a body for workers of the executor `device`.

    The build defines REAL, REAL_IS_FLOAT and LANES, and TASK_NAME for tasks. Bodies are linked with each other, and the
    linker takes types of one name for one type, with the methods of any of them: so all but the entry point of a task,
    such as its `Model`, has no name for the linker.
    """
    entry = {"cuda": _cuda_entry, "task": _task_entry}[target](kernel)
    function = "" if kernel.unit == "column" else world_function(kernel)
    if target == "cuda":
        return source_of(kernel, [], f"{function}\n{entry}" if function else entry)
    return source_of(kernel, ["#define AS_TASK", "namespace {"], f"{function}\n{_IN_GLOBAL}}}  // namespace\n{entry}")


def _cuda_entry(kernel: Kernel) -> str:
    call = ", ".join(p.split()[-1].lstrip("*") for p in parameters(kernel))
    if kernel.unit == "column":
        return (
            f'extern "C" __global__ void __launch_bounds__(LANES) {kernel.name}({", ".join(parameters(kernel))}) {{\n'
            f"  {kernel.stages[0].name}(blockIdx.x, {call});\n}}\n"
        )
    own = "settled_shared(reinterpret_cast<real*>(shared) + threadIdx.y * (scratch_words + COLUMN_WORDS))"
    memory = ""
    if _may_work_in_memory(kernel):
        # the scratch of a large world may not fit in shared memory
        memory = "\n#if LANES > 32\n    , real* scratch_memory\n#endif\n"
        far = "scratch_memory + size_t(slot) * (scratch_words + COLUMN_WORDS)"
        own = f"\n#if LANES > 32\n      {far}\n#else\n      {own}\n#endif\n  "
    least = kernel.min_blocks_per_multiprocessor
    eight = kernel.min_blocks_of_eight_lanes
    narrow = f"{least}" if eight is None else f"(LANES == 8 ? {eight} : {least})"
    threads = 128 * least if kernel.block_per_unit else 512  # on a multiprocessor, of units with more than a warp
    blocks = f"{least}" if kernel.in_blocks else f"LANES > 32 ? {threads} / LANES : {narrow}"
    bounds = f"__launch_bounds__(LANES > 32 ? LANES : BLOCK, {blocks})"
    place = "blockIdx.x * blockDim.y + threadIdx.y"
    if kernel.on_islands:
        # a launch may have room for far more islands than there are; those that are there get warps of their own
        place = "threadIdx.y * gridDim.x + blockIdx.x"
    run = f"{kernel.name}_world({call}, world, scratch{', part' * kernel.in_parts});"
    if kernel.queued:
        work = [f"real* scratch = {own};", *from_queue(kernel, run, place)]
    elif kernel.goes_on:
        work = [
            f"real* scratch = {own};",
            "const int units = worlds ? *num_listed : n;",
            "ROLLED for (int slot = blockIdx.x; slot < units; slot += gridDim.x) {",
            f"  const int world = {unit_of(kernel)};",
            f"  {run}",
            "  lane_sync();",  # the next world uses the same scratch
            "}",
        ]
    else:
        work = [" ".join(slot_of(kernel, place)), f"if ({beyond(kernel)}) return;"]
        work += [f"const int world = {unit_of(kernel)};", f"real* scratch = {own};", run]
    return (
        f'extern "C" __global__ void {bounds} {kernel.name}({", ".join(parameters(kernel))}{memory}) {{\n'
        "  if (full && (full[0] | full[1] | full[2])) return;\n"
        "  extern __shared__ real4_storage shared[];\n" + "".join(f"  {line}\n" for line in work) + "}\n"
    )


def _may_work_in_memory(kernel: Kernel) -> bool:
    """Whether the kernel has its scratch in global memory if it is built for more lanes than a warp has."""
    return kernel.unit == "world" and not kernel.in_blocks and not kernel.queued


def task_name(kernel: Kernel, dtype: str, lanes: int) -> str:
    """Name of the device function that runs one tile of a kernel; unique among those that may be linked together."""
    return f"{kernel.name}_{dtype}_{lanes}_task"


def _task_entry(kernel: Kernel) -> str:
    """The body for workers of the executor `device`: a tile is as many units as groups fit in a warp, or one unit."""
    call = ", ".join(p.split()[-1].lstrip("*") for p in parameters(kernel))
    lines = [
        'extern "C" __device__ void TASK_NAME(const unsigned long long*, int tile, char* memory) {',
        "  // workers keep the arguments at the start of their memory; so the compiler knows where they are",
        "  extern __shared__ __align__(16) unsigned long long task_memory[];",
        "  const unsigned long long* slots = task_memory;",
        *unpacked(kernel, "in_global"),
    ]
    if kernel.unit == "column":
        return "\n".join([*lines, f"  {kernel.stages[0].name}(tile, {call});", "}"]) + "\n"
    own = "settled_shared(reinterpret_cast<real*>(memory))"
    far_away = _may_work_in_memory(kernel)
    if far_away:
        far = f"in_global(reinterpret_cast<real*>(slots[{len(parameters(kernel)) - 1}]))"
        lines += ["#if LANES > 32", f"  real* const work = {far};", "#else", f"  real* const work = {own};", "#endif"]
    else:
        lines.append(f"  real* const work = {own};")
    place = "LANES > 32 ? slot : group_in_block()" if far_away else "LANES > 32 ? 0 : group_in_block()"
    unit = "LANES > 32 ? tile : tile * (32 / LANES) + group_in_block()"
    scratch = f"  real* scratch = work + size_t({place}) * (scratch_words + COLUMN_WORDS);"
    run = f"  {kernel.name}_world({call}, world, scratch{', part' * kernel.in_parts});"
    lines.append("  if (full && (full[0] | full[1] | full[2])) return;")
    if kernel.queued:
        return "\n".join([*lines, scratch, *from_queue(kernel, run, unit), "}"]) + "\n"
    lines += [
        f"  {' '.join(slot_of(kernel, unit))}",
        f"  if ({beyond(kernel)}) return;",
        f"  const int world = {unit_of(kernel)};",
        *(scratch, run),
        "}",
    ]
    return "\n".join(lines) + "\n"
