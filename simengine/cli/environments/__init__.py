"""Environments, for commands that take one.

ids         ids of environments, and the modules that register them
acting      what acts in an environment: a policy, random actions, zeros
stepping    step an environment, which may be recorded
run         the command `run` for an environment
worlds      an environment on the page of `view`
"""
