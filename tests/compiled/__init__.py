"""Tests of programs as XLA computations; without JAX they are skipped."""
