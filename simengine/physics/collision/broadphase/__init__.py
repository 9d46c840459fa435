"""Pairs of geoms found anew in every step by a grid, for models with too many pairs for a table."""
