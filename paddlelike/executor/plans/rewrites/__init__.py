"""Rewrites of the steps of a plan before they are bound."""
