"""Arrays as bytes: Paddle's streams, combined files, state files, and the formats of other systems."""
