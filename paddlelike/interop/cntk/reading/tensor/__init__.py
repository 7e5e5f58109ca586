"""Operators from CNTK: shapes and indexing."""
