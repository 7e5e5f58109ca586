"""Nets that ``tests.benchmarks.bench_nets`` trains: in Fluid's interface, in torch, and in numpy by hand."""
