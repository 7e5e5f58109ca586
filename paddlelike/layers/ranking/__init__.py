"""Layers of ranking and recommendation: counts of shows and clicks, tags of instances."""
