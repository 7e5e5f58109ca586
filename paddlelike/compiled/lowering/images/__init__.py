"""Lowerings of the operators on images: convolutions, pools, interpolation."""
