"""Faults that are injected on purpose, and what became of them: `python -m benchmarks.faults --json FILE`."""
