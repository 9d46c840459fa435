"""Integrators: Euler, Runge-Kutta, implicit and implicit-in-velocity."""
