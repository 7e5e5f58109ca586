"""Operators from CNTK: layers of networks."""
