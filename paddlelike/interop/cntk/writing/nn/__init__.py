"""Operators to CNTK: layers of networks."""
