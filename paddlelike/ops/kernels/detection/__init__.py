"""Kernels of detectors: boxes, regions, suppression."""
