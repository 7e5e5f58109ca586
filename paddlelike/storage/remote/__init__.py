"""Directories behind URLs: fsspec, HDFS."""
