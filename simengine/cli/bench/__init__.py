"""The benchmarks.

command          groups them
stepping         physics steps a second, beside those of MuJoCo
peers/           the same beside other engines
scheduler        the executors of kernel lists
scheduler_report its tables and its chart
published        published figures of scheduling systems
robots/          robots of public packages, as models to measure
"""
