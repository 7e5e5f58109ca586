"""Values of an image in regions and at moved points."""
