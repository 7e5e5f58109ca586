"""Means, variances and normalization."""
