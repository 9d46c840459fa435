"""Collision: which pairs of geoms may touch, how many contacts they have, and the contacts themselves."""
