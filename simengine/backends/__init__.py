"""Backends: the processors that run kernel lists.

    base ── what a backend offers: memory, compiled kernels, launches, and its advice on executors and shards
      ├── host ── CPUs          host_program ── many host calls as one launch
      └── cuda ── NVIDIA GPUs   block_shape ── how many worlds share a block of threads
                                cuda_copies ── many copies as one launch
    select ── makes a backend by its name, or the fastest that is available

The JAX backend runs no kernel lists and has no class here. Nothing here knows the physics.
"""
