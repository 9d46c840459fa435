"""From a model and its counts to the kernel list of a step."""
