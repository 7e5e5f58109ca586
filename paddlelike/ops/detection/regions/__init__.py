"""Values of an image read in regions and at moved points."""
