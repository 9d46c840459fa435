"""Contacts with the prisms of height fields on GPUs."""
