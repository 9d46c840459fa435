"""Sensors, energies, and the derived fields that only sensors and users need.

Stages, in the order in which a step runs them, after the solver:

    energy                        potential and kinetic energy
    subtree_vel                   momenta of subtrees
    acc_bias                      accelerations of bodies at zero qacc; before the integrator changes qvel
    sensor_pos, sensor_vel        sensors of positions and of velocities
    rne_post, rne_post_general    external forces on bodies, cfrc_ext
    body_forces                   accelerations of bodies, and the forces in their joints
    sensor_acc                    sensors of accelerations, forces and contacts

`ray` and `ray_hfield` intersect rays with geoms, for rangefinders. Source: MuJoCo documentation, chapter "XML
Reference", "sensor", and chapter "Computation", section "Simulation pipeline".
"""
