"""Lowerings of networks' layers."""
