"""Loops that numba compiles, in place of several passes of numpy over large arrays (extra ``fast``)."""
