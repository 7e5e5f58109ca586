"""Chains of deltas: of a table that changed in some rows, a save writes those rows."""
