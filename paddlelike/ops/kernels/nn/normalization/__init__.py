"""Means and variances, and what is normalized by them."""
