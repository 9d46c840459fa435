"""The plan of a step."""
