"""The command that trains policies with PPO.

command     its options, and the trainings that they ask for
settings    NAME=VALUE of the call
jobs        a training: its limits and its folder
on_ray      trainings in processes of a Ray cluster
progress    what is shown meanwhile
table       what is shown at the end
"""
