"""Studies of executors: what to run, how to measure it, and how to name what is measured.

specs      an executor and its options in one word
workloads  lists of kernels without physics
measure    speed, legality and results of executors on a workload
"""
