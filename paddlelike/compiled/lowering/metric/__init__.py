"""Lowerings of metrics."""
