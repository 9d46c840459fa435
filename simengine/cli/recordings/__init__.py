"""Recordings of runs.

trajectory   the format of trajectory files
recording    write what worlds do, with checkpoints
recorded_run the options of a run that is recorded, and its loop
video        draw a trajectory
film         draw worlds while they step
replay       the command that shows, draws or checks what a run has recorded
"""
