"""Normalization by statistics of a batch, a row or a group of channels."""
