"""Operators that reduce, sort and search along dims."""
