"""Quantized numbers: floats rounded to steps of a scale, and floats from small integers."""
