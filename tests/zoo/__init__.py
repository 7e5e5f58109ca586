"""Builders for the golden tables of layers and optimizers."""
