"""What a detector is trained towards: boxes matched with true ones, and labels."""
