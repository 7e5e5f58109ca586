"""Directories of the local file system: files, transactions, locks."""
