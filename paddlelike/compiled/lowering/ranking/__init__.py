"""Lowerings of ranking."""
