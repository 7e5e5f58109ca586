"""Arrays and bytes: Paddle's streams, combined files, state files, and what other files are."""
