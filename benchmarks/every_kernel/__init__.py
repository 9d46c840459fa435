"""Every kernel of the engine, launched at least once: `python -m benchmarks.every_kernel`."""
