"""Targets for training a detector: boxes matched with true ones, and labels."""
