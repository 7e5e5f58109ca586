"""Pure numpy kernels that several operators share. They know no operator and no program."""
