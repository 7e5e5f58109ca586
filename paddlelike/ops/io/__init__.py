"""Operators that read and write files, and readers of batches."""
