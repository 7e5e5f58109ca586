"""Lowerings of contrib."""
