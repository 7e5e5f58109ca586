"""Operators from CNTK: shapes and places."""
