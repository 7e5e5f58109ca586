"""Models and checkpoints of the real CNTK, and ours as CNTK's."""
