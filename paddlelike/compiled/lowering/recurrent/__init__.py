"""Lowerings of recurrent networks."""
