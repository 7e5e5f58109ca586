"""Helpers for all floors: notebooks, thread values, locks, progress, warnings, tracebacks."""
