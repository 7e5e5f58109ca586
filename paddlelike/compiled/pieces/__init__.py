"""Pieces of a program that run as one XLA computation."""
