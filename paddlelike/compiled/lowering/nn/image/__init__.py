"""Lowerings of operators on images."""
