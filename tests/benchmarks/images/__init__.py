"""Operators of images that ``tests.benchmarks.bench_images`` runs, in Fluid's interface and in torch."""
