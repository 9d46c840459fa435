"""Processors that run kernel lists, and how one is chosen."""
