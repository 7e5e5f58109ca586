"""Paddle's own files: the two streams, combined files and directories of variables."""
