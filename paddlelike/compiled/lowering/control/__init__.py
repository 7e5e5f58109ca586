"""Lowerings of blocks: branches, loops, recurrent networks; arrays of tensors and rank tables."""
