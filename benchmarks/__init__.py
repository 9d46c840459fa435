"""Benchmarks of stepping and scheduling, and their committed results."""
