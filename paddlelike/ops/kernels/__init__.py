"""Pure numpy kernels that several operators share, independent of operators and programs."""
