"""Datasets written in every dialect, with an account of what the form has no place for."""
