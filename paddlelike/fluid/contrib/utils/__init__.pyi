"""The names of ``fluid.contrib.utils`` and where each is defined."""

from paddlelike.distributed.fleet.hdfs import HDFSClient as HDFSClient
