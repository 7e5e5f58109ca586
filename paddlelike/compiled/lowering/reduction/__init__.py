"""Lowerings of sums, means and searches."""
