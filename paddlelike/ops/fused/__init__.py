"""Operators that inference passes of Paddle make of several others; saved models may hold them."""
