"""Bytes and places: names that are safe as paths, files to read, sets of files written as one."""
