"""Actuation: from controls and activations to generalised forces.

Stages, in the order in which a step runs them:

    transmission                     actuator lengths, velocities and moments
    adhesion                         the moments of adhesion actuators, which need the contacts
    actuation, actuation_general     activation rates, actuator forces, and their generalised force
    activation                       the activations at the end of the step, after the integrator

`actuation` handles simple actuators (joint or fixed tendon, fixed gain, affine bias) without `transmission`.
Source: MuJoCo documentation, chapter "Computation", section "Actuation model".
"""
