"""Integration: from the acceleration to the next state. A model uses one of these stages, after the solver.

    euler, euler_general     semi-implicit Euler, with joint damping taken implicitly; dampers linear, or polynomial
    rk4                      one evaluation of the fourth-order Runge-Kutta step
    implicit, implicitfast   implicit in velocity, with and without the derivative of Coriolis forces

Source: MuJoCo documentation, chapter "Computation", section "Numerical integration".
"""
