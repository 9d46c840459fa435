"""Trained policies.

trained     read them: the folder of a training, or a file
evaluate    the command that measures a policy, in simengine and in MuJoCo
play        the command that shows a policy in a window, or films it
export      the command that writes a policy for machines without simengine
"""
