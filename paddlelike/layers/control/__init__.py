"""Control flow: branches, loops, arrays of tensors."""
