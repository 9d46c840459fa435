"""Sensors, rays, energies, and the derived fields that only sensors and users ask for."""
