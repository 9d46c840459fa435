"""The engines that step the worlds of a `Simulation`.

    engine        `Engine`, the protocol that both engines have
    list_engine   `ListEngine`: kernel lists on backends "host" and "cuda"
    list_groups   `ListGroups`: memory, emitters and parameters of its groups
    list_controls controls that differ from step to step, and their copies
    pauses        which paused groups stay in the lists of a step
    own_gpu       functions of an engine work on its own GPU
    jax_engine    `JaxEngine`: compiled JAX functions on backend "jax"
    jax_batch     the functions of all worlds that `JaxEngine` compiles
    jax_step      `make_step` and `make_forward`: one world, as pure functions
    jax_arguments checks of what is given to them
    jax_params    parameters of single worlds in JAX, and `make_params`

The engines know groups by number. `Simulation` and `Group` check all arguments before an engine receives them.
"""
