"""Non-maximum suppression: of boxes that overlap, keep the best."""
