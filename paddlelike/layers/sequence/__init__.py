"""Layers on LoD sequences."""
