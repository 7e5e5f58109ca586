"""Layers that normalize."""
