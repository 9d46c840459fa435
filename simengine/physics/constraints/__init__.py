"""Constraint rows: equality constraints, friction losses, limits and contacts, and the cost of a row."""
