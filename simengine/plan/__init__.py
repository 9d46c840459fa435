"""The plan of a step: what a model needs on a backend, decided in one place.

    model, worlds, backend ── issue: how calls are issued ──┐
                                                            ├── step_plan: shards, lanes, kernel of whole steps
    stages, forms ── kernels that there are ────────────────┤
                                                            └── selection ── evaluation: launches, counts and waits

The kernels that there are stand in `catalogue`, `smooth_kernels`, `islands`, `pairs`, `tiles` and `variants`.

`StepPlan` is a value: `text` prints it, tests look at it, and `simengine.emission` only follows it. `step_kernels`
finds the kernel of whole steps. `capacity`, `scratch` and `memory` say how much memory a plan takes. `every_kernel` and
`check_cuda` list and compile all kernels for the tests. No memory is allocated and nothing is launched here.
"""
