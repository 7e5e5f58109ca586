"""Plans: programs bound to their kernels, and the values for the kernels."""
