"""Passive forces: springs, dampers, fluids and gravity compensation."""
