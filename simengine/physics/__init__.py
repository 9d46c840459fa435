"""The physics: one room a topic.

    math                   vectors, quaternions, spatial algebra, trees, linear algebra
    kinematics             frames, centres of mass, motion axes
    dynamics               inertia matrix, bias forces, smooth acceleration
    passive                springs, dampers, fluids, gravity compensation
    actuation              transmissions, activations, actuator forces
    tendons                lengths, wrapping, forces
    collision              pairs of geoms, counting, contacts
    constraints            rows, and their cost
    solvers                Newton, conjugate gradients, projected Gauss-Seidel
    islands                what rows connect, solved apart; inertia by blocks
    integration            from accelerations to the next state
    sensors                sensors, rays, energies

A stage `x` is three siblings in its room: `x.py` declares what it reads and writes, `x.cu` is its device body in the
dialect of `simengine/kernels/dialect.cuh`, and `x_jax.py` the same mathematics in JAX. Headers `y.cuh` hold device
functions that several bodies share, `y_jax.py` their twins. File names are unique across rooms, so that a source of a
kernel names its parts by file name alone.
"""
