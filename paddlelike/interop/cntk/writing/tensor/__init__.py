"""Operators to CNTK: shapes and places."""
