"""Passive forces: springs, dampers, fluid forces and gravity compensation.

Stages, in the order in which a step runs them:

    passive, passive_general    springs and dampers of joints and fixed tendons: linear, or polynomial
    fluid, fluid_general        fluid forces: MuJoCo's inertia model alone, or with its ellipsoid model
    gravcomp                    gravity compensation; runs after the actuators, to whose forces it may add

Springs and dampers of spatial tendons belong to `simengine/physics/tendons`.
Source: MuJoCo documentation, chapter "Computation", sections "Passive forces" and "Fluid forces".
"""
