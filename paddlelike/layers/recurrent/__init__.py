"""Recurrent networks, decoding and beam search."""
