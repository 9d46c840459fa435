"""Steps of the engine inside JAX programs, through XLA's foreign-function interface.

    functions     `make_batch_step` and `make_batch_forward`: pure functions on the states of many worlds
    params        `make_batch_params`, what follows from parameters of many worlds
    invweights    what follows from their masses, by a kernel
    state         `BatchState`, all that a step depends on, as arrays of JAX
    calls         `Call`: which arrays a custom call takes and gives, and the engine's memory behind it
    folding       a custom call as a function of JAX
    host_memory   memory of a call on a CPU: programs of compiled kernel calls
    cuda_memory   memory of a call on a GPU: graphs of kernel launches
    handler_build compiles the handlers, which XLA calls
    library       registers them
    host_calls    random numbers, joined arrays and rows of few worlds as custom calls on a CPU
    chains, lanes programs before and after calls of the engine, in one custom call on a CPU, and their operations
    python_handlers, call_frame
                  handlers in Python, for machines without a C++ compiler

A custom call copies its arguments into the engine's memory, runs kept lists of kernels there and copies the results
out. No Python runs in between, except where an arena has to grow.
"""
