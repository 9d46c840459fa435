"""Tendons: their lengths and velocities, wrapping, springs and dampers, and their forces on bodies."""
