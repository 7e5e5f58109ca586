"""Plans: programs bound to their kernels, and what kernels run on."""
