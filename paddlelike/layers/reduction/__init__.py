"""Reductions along dims, sorting and searching."""
