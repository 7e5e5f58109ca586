"""Tests of programs as XLA computations; all need JAX."""
