"""Tests of lowerings of sequences and loops."""
