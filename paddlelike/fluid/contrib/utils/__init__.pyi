"""The names of ``fluid.contrib.utils`` and where each is defined."""

from paddlelike.fluid.incubate.hdfs import HDFSClient

__all__ = ["HDFSClient"]
