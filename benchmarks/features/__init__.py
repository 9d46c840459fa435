"""Finds the features that the loader of each engine accepts.

`probes` has a model for each feature, `engines` the loaders, and `table` writes `docs/features.md` from the answers.
"""
