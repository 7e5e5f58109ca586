"""Saves and loads as programs: building them, and the files that the operators of a run write and read."""
