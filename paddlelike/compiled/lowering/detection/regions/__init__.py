"""Lowerings of operators on regions of images."""
