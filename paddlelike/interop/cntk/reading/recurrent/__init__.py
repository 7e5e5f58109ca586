"""Recurrent networks: loops through steps, and the stacks of cuDNN."""
