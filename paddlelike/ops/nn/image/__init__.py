"""Pools, resizing, sampling and rearranging of images."""
