"""Operators between trainers and parameter servers."""
