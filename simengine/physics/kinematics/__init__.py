"""Kinematics: where bodies, joints, geoms and sites are, and how fast bodies move.

Stages, in the order in which a step runs them:

    guard                  flags a world whose state or control is not finite
    kinematics, sites      world frames of bodies, joints, geoms and sites
    com_pos                centres of mass, spatial inertias and motion axes of the dofs
    com_vel                spatial velocities of bodies and rates of the motion axes

Source: MuJoCo documentation, chapter "Computation", sections "General framework" and "Simulation pipeline".
"""
