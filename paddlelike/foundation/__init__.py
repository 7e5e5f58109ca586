"""Helpers for the whole package: notebooks, values per thread, locks, progress, warnings, tracebacks."""
