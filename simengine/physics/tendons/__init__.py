"""Tendons: lengths, velocities, wrapping, springs and dampers, and forces on bodies.

Stages, in the order in which a step runs them:

    tendon                 lengths and Jacobians of all tendons; wrapping around geoms
    tendon_velocity        rates of the lengths
    tendon_passive         springs and dampers of spatial tendons
    tendon_forces          the forces of spatial tendons on bodies, for cfrc_ext, after the solver

Source: MuJoCo documentation, chapter "Computation", section "Actuation model", and chapter "XML Reference",
"tendon/spatial" and "tendon/fixed".
"""
