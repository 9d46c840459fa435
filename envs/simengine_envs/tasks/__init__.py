"""The tasks. Each file defines one task, its single environment and its vector environment."""
