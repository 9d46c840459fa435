"""From stages to compiled kernels.

    kernel, catalogue                    `Kernel`: one or several stages in one launch; the kernels that there are
    island_kernels, pairs, step_kernel   kernels for islands, for pairs found in every step, and for whole steps
    dialect, lanes, scalars, addresses   the portable dialect, for GPU and host compilers; .cuh
    codegen, step_codegen, prelude       generated source text
    cuda_build, host_build               compilers; `simengine_scheduler.native.cache` has what they built

Source of the terms of execution (kernel, block, warp, lane, shared memory): CUDA C++ Programming Guide.
"""
