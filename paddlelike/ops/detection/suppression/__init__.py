"""Non-maximum suppression: keep the best of overlapping boxes."""
