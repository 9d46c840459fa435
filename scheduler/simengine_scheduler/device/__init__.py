"""The window on the device: bodies that workers run, the image of a list in the device's memory, and its programs."""
