"""Contacts of one pair of geoms, a file for each pair of geom types."""
