"""Checkpoints of a training: numbered directories."""
