"""Makers of inputs for the fuzzer: valid files and trees, and damage to them."""
