"""Which features each engine's loader accepts: probes, the engines, and the table in `docs/features.md`."""
