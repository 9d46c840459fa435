"""What options of the command line mean.

settings    merge typed options, presets and defaults
keyframe    the keyframe that an option names
errors      the error of a wrong call
"""
