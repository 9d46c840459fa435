"""Lists through other schedulers, to compare this one with: `python -m benchmarks.scheduler_peers`."""
