"""Calls to a local file system: locks, links, mapped files, errors."""
