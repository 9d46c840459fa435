"""The physics: one folder per topic, in the order in which a step runs them.

    kinematics             frames, centres of mass, motion axes
    tendons                lengths, wrapping, forces
    collision              pairs of geoms, counting, contacts
    dynamics               joint-space inertia matrix, bias forces, smooth acceleration
    passive                springs, dampers, fluids, gravity compensation
    actuation              transmissions, activations, actuator forces
    constraints            constraint rows, and their cost
    solvers                Newton, conjugate gradients, projected Gauss-Seidel
    islands                groups of constraint rows that are solved separately; block-diagonal inertia
    integration            from accelerations to the next state
    sensors                sensors, rays, energies
    math                   what the others share: vectors, quaternions, spatial algebra, trees, linear algebra

A stage `x` is three files in one folder: `x.py` declares what it reads and writes, `x.cu` is its device body in the
dialect of `simengine/kernels/dialect.cuh`, and `x_jax.py` is the same mathematics in JAX. A header `y.cuh` holds
device functions that several bodies share, and `y_jax.py` their JAX forms. File names are unique across the folders,
because the generated source of a kernel names its parts by file name alone.

The order of a step follows MuJoCo's documentation, chapter "Computation", section "Simulation pipeline".
"""
