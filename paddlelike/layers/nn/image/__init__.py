"""Layers on images."""
