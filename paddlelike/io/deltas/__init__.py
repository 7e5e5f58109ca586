"""Chains of deltas: a save writes only the changed rows of a table."""
