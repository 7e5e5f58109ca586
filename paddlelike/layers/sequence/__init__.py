"""Layers on sequences described by a LoD."""
