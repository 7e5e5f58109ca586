"""Commands that look into files, and change none."""
