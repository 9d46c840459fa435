"""From stages to compiled kernels.

    kernel, step_kernel                  `Kernel`: one or several stages in one launch, or whole steps
    placing                              offsets of a kernel's items in the scratch of a world
    dialect, scalars, addresses          the portable dialect, for GPU and host compilers; .cuh
    lanes, lanes_gpu, lanes_host         what the lanes of a world do together; .cuh
    host_math, vectors                   functions of C, and vectors, on the host; .h
    tile, host_lanes                     tiles of worlds, and lanes as threads on the host; .h
    host_program                         calls of whole steps on the host, without Python; .h
    headers, sources                     the texts that a source needs, and their order
    prelude, signatures                  generated constants and accessors; arguments of kernels and bodies
    world_codegen, cuda_codegen, host_codegen, step_codegen
                                         generated source text
    cuda_build, host_build               compilers; `simengine_scheduler.native.cache` has what they built
    functions                            `KernelFunctions`: compiled kernels, built when first needed

Which kernels there are, `simengine.plan` says.

Source of the terms of execution (kernel, block, warp, lane, shared memory): CUDA C++ Programming Guide.
"""
